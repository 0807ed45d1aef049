// Operators that move or view elements without computing.
#include "frontends/onnx/Node.h"
#include <numeric>

namespace dspark::onnx {
namespace {

void buildReshape1(Node &n) { n.out(0, n.one("reshape", {n.in(0), n.list(n.ints("shape"))})); }

/// Until opset 12 the axes were an attribute; without them Squeeze removes every axis of size 1.
void buildSqueeze1(Node &n) {
  mlir::Value axes = n.hasAttribute("axes") ? n.list(n.ints("axes")) : mlir::Value();
  n.out(0, n.one("squeeze", {n.in(0), axes}));
}
void buildUnsqueeze1(Node &n) { n.out(0, n.one("unsqueeze", {n.in(0), n.list(n.ints("axes"))})); }

/// Until opset 3 the axis was 1 if absent.
void buildConcat1(Node &n) { n.out(0, n.one("concat", n.inputs(), {n.attr("axis", n.i("axis", 1))})); }

mlir::Value splitSizes(Node &n) {
  if (n.has(1))
    return n.in(1);
  return n.hasAttribute("split") ? n.list(n.ints("split")) : mlir::Value();
}
/// Equal parts: as many as there are results, unless num_outputs (opset 18) says so.
void buildSplit(Node &n) {
  mlir::Value sizes = splitSizes(n);
  Attributes attributes = {n.attr("axis", n.i("axis", 0))};
  int64_t count = n.i("num_outputs", int64_t(n.numOutputs()));
  if (count != int64_t(n.numOutputs()))
    return n.invalid("num_outputs is " + std::to_string(count) + " but the node has " +
                     std::to_string(n.numOutputs()) + " results");
  if (!sizes)
    attributes.push_back(n.attr("num_outputs", count));
  n.outs(n.emit("split", {n.in(0), sizes}, attributes, n.numOutputs()));
}

void buildSlice1(Node &n) {
  std::vector<int64_t> starts = n.ints("starts"), ends = n.ints("ends"), axes = n.ints("axes");
  if (!n.hasAttribute("axes")) {
    axes.resize(starts.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  n.out(0, n.one("slice", {n.in(0), n.list(starts), n.list(ends), n.list(axes)}));
}

void buildPad(Node &n, std::string_view padsName) {
  mlir::Value value = n.hasAttribute("value") ? n.scalarLike(n.in(0), n.f("value", 0)) : mlir::Value();
  n.out(0, n.one("pad", {n.in(0), n.list(n.ints(padsName)), value}, n.pick("mode")));
}
void buildPad1(Node &n) { buildPad(n, "paddings"); }
void buildPad2(Node &n) { buildPad(n, "pads"); }

/// Before opset 6: so many tiles along one axis, both scalar operands.
void buildTile1(Node &n) {
  auto rank = n.rank(n.in(0));
  TensorInfo axis = n.info(n.in(2));
  if (!rank || !axis.hasContents || axis.ints.size() + axis.floats.size() != 1)
    return n.unsupported("Tile before opset 6 needs an input of known rank and a constant axis");
  double given = !axis.floats.empty()     ? axis.floats[0]
                 : axis.ints[0].isConst() ? double(axis.ints[0].value())
                                          : -1;
  if (!(given >= 0 && given < double(*rank)))
    return n.invalid("its axis is outside the input's rank " + std::to_string(*rank));
  auto at = int64_t(given);
  mlir::Value tiles = n.one("reshape", {n.cast(n.in(1), DType::I64), n.list({1})});
  std::vector<int64_t> before(size_t(at), 1), after(size_t(*rank - at - 1), 1);
  mlir::Value repeats = n.one("concat", {n.list(before), tiles, n.list(after)}, {n.attr("axis", int64_t(0))});
  n.out(0, n.one("tile", {n.in(0), repeats}));
}

constexpr OpRow rows[] = {
    built("Reshape", 1, {}, buildReshape1, "shape:I!"),
    direct("Reshape", 5, {2, 2}, "reshape", "allowzero:i"),
    built("Squeeze", 1, {}, buildSqueeze1, "axes:I"),
    direct("Squeeze", 13, {1, 2}, "squeeze"),
    built("Unsqueeze", 1, {}, buildUnsqueeze1, "axes:I!"),
    direct("Unsqueeze", 13, {2, 2}, "unsqueeze"),
    direct("Flatten", 1, {}, "flatten", "axis:i"),
    direct("Transpose", 1, {}, "transpose", "perm:I"),
    built("Concat", 1, {1, kVariadic}, buildConcat1, "axis:i"),
    direct("Concat", 4, {1, kVariadic}, "concat", "axis:i!"),
    built("Split", 1, {1, 2, 1, kVariadic}, buildSplit, "axis:i split:I"),
    built("Split", 13, {1, 2, 1, kVariadic}, buildSplit, "axis:i num_outputs:i"),
    built("Slice", 1, {}, buildSlice1, "starts:I! ends:I! axes:I"),
    direct("Slice", 10, {3, 5}, "slice"),
    built("Pad", 1, {}, buildPad1, "mode:s paddings:I! value:f"),
    built("Pad", 2, {}, buildPad2, "mode:s pads:I! value:f"),
    direct("Pad", 11, {2, 4}, "pad", "mode:s"),
    direct("Expand", 8, {2, 2}, "expand"),
    built("Tile", 1, {3, 3}, buildTile1),
    direct("Tile", 6, {2, 2}, "tile"),
    direct("Shape", 1, {}, "shape", "start:i end:i"),
    direct("Size", 1, {}, "size"),
    direct("DepthToSpace", 1, {}, "depth_to_space", "blocksize:i! mode:s"),
    direct("SpaceToDepth", 1, {}, "space_to_depth", "blocksize:i! mode:s"),
    direct("ReverseSequence", 10, {2, 2}, "reverse_sequence", "batch_axis:i time_axis:i"),
    direct("Trilu", 14, {1, 2}, "trilu", "upper:i"),
    direct("CenterCropPad", 18, {2, 2}, "center_crop_pad", "axes:I"),
};

} // namespace

OpRows movementRows() { return rows; }

} // namespace dspark::onnx
