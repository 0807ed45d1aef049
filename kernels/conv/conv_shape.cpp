// Shapes of convolutions: plain, transposed, integer, quantised and deformable.
#include "kernels/common/families.h"
#include "kernels/common/infer.h"
#include "kernels/common/window.h"
#include "kernels/matmul/epilogue.h"
#include <limits>

namespace dspark {
namespace {

bool isConvType(DType type) {
  return type == DType::F16 || type == DType::BF16 || type == DType::F32 || type == DType::F64;
}
bool isByte(DType type) { return type == DType::I8 || type == DType::U8; }

// Window, dims and channel order of one convolution, as far as known.
struct ConvShape {
  WindowAttrs window;
  int64_t group = 1;
  bool channelsLast = false;
  Dim batch, channels, spatial[kMaxSpatial];
  Dim kernel[kMaxSpatial]; // from kernel_shape or else from w
  int rank = 0;            // of x; 0 when neither x nor w has a rank

  Dim &outDim(std::vector<Dim> &dims, int axis) const { return dims[channelsLast ? 1 + axis : 2 + axis]; }
};

bool readGroup(InferContext &ctx, ConvShape &shape) {
  shape.group = ctx.attrs.i("group", 1);
  if (shape.group >= 1 && shape.group <= std::numeric_limits<int32_t>::max())
    return true;
  ctx.error = "group: expected a positive int32, found " + std::to_string(shape.group);
  return false;
}

// Fills shape from x (operand xi) and w (operand wi); both may lack a rank.
bool readConv(InferContext &ctx, size_t xi, size_t wi, ConvShape &shape) {
  const TensorInfo &x = ctx.in[xi], &w = ctx.in[wi];
  const char *error = nullptr;
  shape.channelsLast = readChannelsLast(ctx.attrs, error);
  shape.rank = x.hasRank ? x.rank() : w.hasRank ? w.rank() : 0;
  if (!error && (x.hasRank || w.hasRank))
    error = shape.window.read(ctx.attrs, shape.rank - 2);
  if (error) {
    ctx.error = error;
    return false;
  }
  if (!readGroup(ctx, shape))
    return false;
  if (w.hasRank && w.rank() != shape.rank) {
    ctx.error = "weights: expected rank " + std::to_string(shape.rank) + " for operand " + x.str() +
                ", found " + w.str();
    return false;
  }
  int spatialRank = shape.rank - 2;
  if (x.hasRank) {
    shape.batch = x.dims[0];
    shape.channels = x.dims[shape.channelsLast ? shape.rank - 1 : 1];
    for (int i = 0; i < spatialRank; ++i)
      shape.spatial[i] = x.dims[i + (shape.channelsLast ? 1 : 2)];
  }
  bool hasAttr = ctx.attrs.has("kernel_shape");
  for (int i = 0; i < spatialRank; ++i) {
    Dim fromWeights = w.hasRank ? w.dims[2 + i] : Dim();
    std::optional<Dim> both = mergeDims(hasAttr ? Dim(shape.window.kernel[i]) : Dim(), fromWeights);
    if (!both ||
        (both->isConst() && (both->value() < 1 || both->value() > std::numeric_limits<int32_t>::max()))) {
      ctx.error = "kernel_shape: expected the spatial dims of the weights " + w.str();
      return false;
    }
    shape.kernel[i] = *both;
    if (both->isConst()) {
      shape.window.kernel[i] = both->value();
      if (shape.window.extent(i) > std::numeric_limits<int32_t>::max()) {
        ctx.error = "dilations: expected a window of at most 2^31 elements";
        return false;
      }
    }
  }
  return true;
}

bool checkChannels(InferContext &ctx, Dim found, Dim expected, const char *what) {
  if (mergeDims(found, expected))
    return true;
  ctx.error = std::string(what) + ": expected " + expected.str() + ", found " + found.str();
  return false;
}

bool checkDivides(InferContext &ctx, int64_t group, Dim channels, const char *what) {
  if (!channels.isConst() || channels.value() % group == 0)
    return true;
  ctx.error = std::string(what) + ": expected a multiple of group " + std::to_string(group) + ", found " +
              channels.str();
  return false;
}

bool checkBias(InferContext &ctx, size_t i, DType type, Dim channels) {
  if (!ctx.has(i))
    return true;
  const TensorInfo &bias = ctx.in[i];
  if (bias.type == type && (!bias.hasRank || (bias.rank() == 1 && mergeDims(bias.dims[0], channels))))
    return true;
  ctx.error = "bias: expected " + TensorInfo::make(type, {channels}).str() + ", found " + bias.str();
  return false;
}

// A size that numbers show to be negative is an error: the window does not fit.
bool checkSize(InferContext &ctx, Dim size, Dim in) {
  if (!size.isConst() || size.value() >= 0)
    return true;
  ctx.error = "the window is larger than the padded input of " + in.str() + " elements";
  return false;
}

void setDims(const ConvShape &shape, Dim channels, const Dim *spatial, TensorInfo &result) {
  result.hasRank = true;
  result.dims.assign(size_t(shape.rank), Dim());
  result.dims[0] = shape.batch;
  result.dims[shape.channelsLast ? shape.rank - 1 : 1] = channels;
  for (int i = 0; i < shape.rank - 2; ++i)
    shape.outDim(result.dims, i) = spatial[i];
}

// Result dims of a plain convolution; w is O, I/g, spatial.
bool convDims(InferContext &ctx, size_t xi, size_t wi, ConvShape &shape, TensorInfo &result,
              Dim &outChannels) {
  if (!readConv(ctx, xi, wi, shape))
    return false;
  const TensorInfo &w = ctx.in[wi];
  if (w.hasRank && w.rank() >= 2) {
    outChannels = w.dims[0];
    if (!checkChannels(ctx, shape.channels, w.dims[1] * Dim(shape.group), "input channels"))
      return false;
  }
  if (!checkDivides(ctx, shape.group, outChannels, "output channels") ||
      !checkDivides(ctx, shape.group, shape.channels, "input channels"))
    return false;
  if (shape.rank == 0)
    return true;
  Dim spatial[kMaxSpatial];
  bool isSame = shape.window.autoPad == AutoPad::SameUpper || shape.window.autoPad == AutoPad::SameLower;
  for (int i = 0; i < shape.rank - 2; ++i) {
    if (shape.kernel[i].isConst() || isSame)
      spatial[i] = shape.window.output(i, shape.spatial[i]);
    if (!checkSize(ctx, spatial[i], shape.spatial[i]))
      return false;
  }
  setDims(shape, outChannels, spatial, result);
  return true;
}

// What the packed layout depthwise asks for, of weights w.
InferStatus checkDepthwise(InferContext &ctx, size_t wi, const ConvShape &shape, Dim channels) {
  const TensorInfo &w = ctx.in[wi];
  if (ctx.attrs.s("packed", "") != "depthwise")
    return InferStatus::Ok;
  if (dtypeBits(w.type) == 8 && !shape.channelsLast)
    return ctx.fail("packed depthwise: expected layout nhwc for 8-bit weights");
  if (w.hasRank && w.rank() >= 2 && !w.dims[1].isUnknown() &&
      (!mergeDims(w.dims[1], Dim(1)) || !mergeDims(channels, Dim(shape.group))))
    return ctx.fail("packed depthwise: expected one input and one output channel per group, found " +
                    w.str());
  return InferStatus::Ok;
}

InferStatus inferConv(InferContext &ctx) {
  if (!checkCounts(ctx, 2, 4, 1, 1) || !checkEpilogue(ctx) ||
      !checkPacked(ctx, {"", "panel16", "bf16", "depthwise"}))
    return InferStatus::Error;
  TensorInfo &result = ctx.out[0];
  result.type = ctx.in[0].type;
  if (ctx.attrs.s("packed", "") == "bf16" &&
      (result.type != DType::F32 || ctx.attrs.s("layout", "") != "nhwc"))
    return ctx.fail("packed bf16: expected f32 in layout nhwc, found " + ctx.in[0].str());
  if (!isConvType(result.type) || ctx.in[1].type != result.type)
    return ctx.fail("expected operands of one float type, found " + ctx.in[0].str() + " and " +
                    ctx.in[1].str());
  ConvShape shape;
  Dim channels;
  if (!convDims(ctx, 0, 1, shape, result, channels) || !checkBias(ctx, 2, result.type, channels) ||
      !checkResidual(ctx, 3, result))
    return InferStatus::Error;
  return checkDepthwise(ctx, 1, shape, channels);
}

// x, w1, bias1?, w2, bias2?: w1 is C, I, 1, 1 and w2 one filter per channel; the window is that of w2.
InferStatus inferExpandDepthwise(InferContext &ctx) {
  if (!checkCounts(ctx, 2, 5, 1, 1) || !checkEpilogue(ctx, "expand_") || !checkEpilogue(ctx))
    return InferStatus::Error;
  for (size_t i : {0, 1, 3})
    if (!ctx.has(i) || ctx.in[i].type != DType::F32 || (ctx.in[i].hasRank && ctx.in[i].rank() != 4))
      return ctx.fail("operand " + std::to_string(i) + ": expected f32 of rank 4, found " +
                      (ctx.has(i) ? ctx.in[i].str() : "none"));
  if (ctx.attrs.s("layout", "") != "nhwc" || ctx.attrs.s("packed", "") != "depthwise")
    return ctx.fail("layout, packed: expected nhwc and depthwise");
  if (std::string_view layout = ctx.attrs.s("expand_packed", "panel16");
      layout != "panel16" && layout != "bf16")
    return ctx.fail("expand_packed: expected panel16 or bf16, found " + std::string(layout));
  ctx.out[0].type = DType::F32;
  const TensorInfo &w1 = ctx.in[1], &w2 = ctx.in[3];
  if (!w1.hasRank || !w2.hasRank)
    return InferStatus::Ok;
  Dim channels = w1.dims[0];
  if (!mergeDims(w1.dims[2], Dim(1)) || !mergeDims(w1.dims[3], Dim(1)) || !mergeDims(w2.dims[1], Dim(1)) ||
      !mergeDims(w2.dims[0], channels) || !mergeDims(channels, Dim(ctx.attrs.i("group", 1))))
    return ctx.fail("expected weights [group, I, 1, 1] and [group, 1, height, width], found " + w1.str() +
                    " and " + w2.str());
  // The expanded image, as the depthwise part reads it.
  std::vector<TensorInfo> in(ctx.in.begin(), ctx.in.end());
  if (in[0].hasRank) {
    if (!checkChannels(ctx, in[0].dims[3], w1.dims[1], "input channels"))
      return InferStatus::Error;
    in[0].dims[3] = channels;
  }
  InferContext depthwise;
  depthwise.in = in;
  depthwise.attrs = ctx.attrs;
  ConvShape shape;
  if (!convDims(depthwise, 0, 3, shape, ctx.out[0], channels)) {
    ctx.error = std::move(depthwise.error);
    return InferStatus::Error;
  }
  return checkBias(ctx, 2, DType::F32, channels) && checkBias(ctx, 4, DType::F32, channels)
             ? InferStatus::Ok
             : InferStatus::Error;
}

InferStatus inferConvInteger(InferContext &ctx) {
  if (!checkCounts(ctx, 2, 4, 1, 1) || !checkPacked(ctx, {"", "panel16k4"}))
    return InferStatus::Error;
  if (!isByte(ctx.in[0].type) || !isByte(ctx.in[1].type))
    return ctx.fail("expected operands of i8 or u8, found " + ctx.in[0].str() + " and " + ctx.in[1].str());
  ctx.out[0].type = DType::I32;
  ConvShape shape;
  Dim channels;
  if (!convDims(ctx, 0, 1, shape, ctx.out[0], channels))
    return InferStatus::Error;
  for (size_t i : {2, 3}) {
    if (!ctx.has(i))
      continue;
    Dim count = ctx.in[i].elements();
    bool fits = count.isUnknown() || mergeDims(count, Dim(1)) || (i == 3 && mergeDims(count, channels));
    if (ctx.in[i].type != ctx.in[i - 2].type || !fits)
      return ctx.fail("zero point of operand " + std::to_string(i - 2) + ": found " + ctx.in[i].str());
  }
  return InferStatus::Ok;
}

// x, x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale?, y_zero_point?, bias?, residual?. Without
// y_scale the result is f32, and only then is there a residual. The bias is i32 in units of x_scale *
// w_scale, or f32.
InferStatus inferQlinearConv(InferContext &ctx) {
  if (!checkCounts(ctx, 6, 10, 1, 1) || !checkQuantizedResult(ctx, 6) ||
      !checkPacked(ctx, {"", "panel16k4", "depthwise"}))
    return InferStatus::Error;
  for (size_t i : {0, 3})
    if (!isByte(ctx.in[i].type))
      return ctx.fail("operand " + std::to_string(i) + ": expected i8 or u8, found " + ctx.in[i].str());
  if (ctx.in[2].type != ctx.in[0].type || ctx.in[5].type != ctx.in[3].type)
    return ctx.fail("expected zero points of the types of x and w, found " + ctx.in[2].str() + " and " +
                    ctx.in[5].str());
  ConvShape shape;
  Dim channels;
  bool hasFloatBias = ctx.has(8) && ctx.in[8].type == DType::F32;
  if (!convDims(ctx, 0, 3, shape, ctx.out[0], channels) ||
      !checkBias(ctx, 8, hasFloatBias ? DType::F32 : DType::I32, channels))
    return InferStatus::Error;
  for (size_t i : {1, 2, 4, 5, 6, 7}) {
    if (!ctx.has(i))
      continue;
    Dim count = ctx.in[i].elements();
    bool perChannel = i == 4 || i == 5;
    if (!count.isUnknown() && !mergeDims(count, Dim(1)) && !(perChannel && mergeDims(count, channels)))
      return ctx.fail("operand " + std::to_string(i) + ": expected one element" +
                      (perChannel ? " or one per output channel" : "") + ", found " + ctx.in[i].str());
    if ((i == 1 || i == 4 || i == 6) && ctx.in[i].type != DType::F32)
      return ctx.fail("operand " + std::to_string(i) + ": expected an f32 scale, found " + ctx.in[i].str());
  }
  if (!checkResidual(ctx, 9, ctx.out[0]))
    return InferStatus::Error;
  return checkDepthwise(ctx, 3, shape, channels);
}

// One axis of a transposed convolution: how far the taps reach without padding.
Dim naturalSize(const ConvShape &shape, int axis, int64_t outputPadding) {
  Dim size = (shape.spatial[axis] - Dim(1)) * Dim(shape.window.stride[axis]) +
             Dim(shape.window.extent(axis) + outputPadding);
  return size;
}

// w is I, O/g, spatial.
InferStatus inferConvTranspose(InferContext &ctx) {
  if (!checkCounts(ctx, 2, 4, 1, 1) || !checkEpilogue(ctx) || !checkPacked(ctx, {"", "panel16"}))
    return InferStatus::Error;
  TensorInfo &result = ctx.out[0];
  result.type = ctx.in[0].type;
  if (!isConvType(result.type) || ctx.in[1].type != result.type)
    return ctx.fail("expected operands of one float type, found " + ctx.in[0].str() + " and " +
                    ctx.in[1].str());
  ConvShape shape;
  if (!readConv(ctx, 0, 1, shape))
    return InferStatus::Error;
  if (shape.rank == 0)
    return InferStatus::Ok;
  const TensorInfo &w = ctx.in[1];
  Dim channels = w.hasRank ? w.dims[1] * Dim(shape.group) : Dim();
  if (w.hasRank && !checkChannels(ctx, shape.channels, w.dims[0], "input channels"))
    return InferStatus::Error;
  if (!checkDivides(ctx, shape.group, shape.channels, "input channels") ||
      !checkBias(ctx, 2, result.type, channels))
    return InferStatus::Error;
  std::span<const int64_t> outputShape = ctx.attrs.ints("output_shape"),
                           outputPadding = ctx.attrs.ints("output_padding");
  size_t spatialRank = size_t(shape.rank - 2);
  // Some exporters write the whole shape; its last entries count.
  if (outputShape.size() == spatialRank + 2)
    outputShape = outputShape.subspan(2);
  if (!outputShape.empty() && outputShape.size() != spatialRank)
    return ctx.fail("output_shape: expected one entry per spatial dim");
  if (!outputPadding.empty() && outputPadding.size() != spatialRank)
    return ctx.fail("output_padding: expected one entry per spatial dim");
  Dim spatial[kMaxSpatial];
  bool isSame = shape.window.autoPad == AutoPad::SameUpper || shape.window.autoPad == AutoPad::SameLower;
  for (int i = 0; i < int(spatialRank); ++i) {
    int64_t extra = outputPadding.empty() ? 0 : outputPadding[i];
    if (extra < 0 || extra > std::numeric_limits<int32_t>::max())
      return ctx.fail("output_padding: expected int32 >= 0, found " + std::to_string(extra));
    if (!outputShape.empty())
      spatial[i] = Dim(outputShape[i]);
    else if (isSame)
      spatial[i] = shape.spatial[i] * Dim(shape.window.stride[i]);
    else if (shape.kernel[i].isConst())
      spatial[i] = naturalSize(shape, i, extra) - Dim(shape.window.padBegin[i] + shape.window.padEnd[i]);
    if (spatial[i].isConst() &&
        (spatial[i].value() < 0 || spatial[i].value() > std::numeric_limits<int32_t>::max()))
      return ctx.fail("spatial dim " + std::to_string(i) +
                      ": expected a result of 0 to 2^31 elements, found " + spatial[i].str());
  }
  setDims(shape, channels, spatial, result);
  return checkResidual(ctx, 3, result) ? InferStatus::Ok : InferStatus::Error;
}

// x, w, offset, bias?, mask?
InferStatus inferDeformConv(InferContext &ctx) {
  if (!checkCounts(ctx, 3, 5, 1, 1))
    return InferStatus::Error;
  TensorInfo &result = ctx.out[0];
  result.type = ctx.in[0].type;
  for (size_t i = 0; i < ctx.in.size(); ++i)
    if (ctx.has(i) && (!isConvType(result.type) || ctx.in[i].type != result.type))
      return ctx.fail("expected operands of one float type, found " + ctx.in[0].str() + " and " +
                      ctx.in[i].str());
  if (ctx.attrs.s("layout", "nchw") != "nchw")
    return ctx.fail("layout: expected nchw");
  int64_t offsetGroup = ctx.attrs.i("offset_group", 1);
  if (offsetGroup < 1 || offsetGroup > std::numeric_limits<int32_t>::max())
    return ctx.fail("offset_group: expected a positive int32, found " + std::to_string(offsetGroup));
  ConvShape shape;
  Dim channels;
  if (!convDims(ctx, 0, 1, shape, result, channels) || !checkBias(ctx, 3, result.type, channels))
    return InferStatus::Error;
  if (shape.rank != 0 && shape.rank != 4)
    return ctx.fail("expected two spatial dims, found " + ctx.in[0].str());
  if (!checkDivides(ctx, offsetGroup, shape.channels, "input channels, by offset_group"))
    return InferStatus::Error;
  for (size_t i : {2, 4}) {
    if (!ctx.has(i) || !ctx.in[i].hasRank || shape.rank == 0)
      continue;
    Dim taps = shape.kernel[0] * shape.kernel[1] * Dim(offsetGroup * (i == 2 ? 2 : 1));
    const TensorInfo &operand = ctx.in[i];
    bool fits = operand.rank() == 4 && mergeDims(operand.dims[0], shape.batch) &&
                mergeDims(operand.dims[1], taps) && mergeDims(operand.dims[2], result.dims[2]) &&
                mergeDims(operand.dims[3], result.dims[3]);
    if (!fits)
      return ctx.fail(std::string(i == 2 ? "offset" : "mask") + ": expected [" + shape.batch.str() + ", " +
                      taps.str() + ", " + result.dims[2].str() + ", " + result.dims[3].str() + "], found " +
                      operand.str());
  }
  return InferStatus::Ok;
}

constexpr OpEntry kOps[] = {
    {"conv", inferConv},
    {"expand_depthwise", inferExpandDepthwise},
    {"conv_transpose", inferConvTranspose},
    {"conv_integer", inferConvInteger},
    {"qlinear_conv", inferQlinearConv},
    {"deform_conv", inferDeformConv},
};

} // namespace

std::span<const OpEntry> convOps() { return kOps; }

} // namespace dspark
