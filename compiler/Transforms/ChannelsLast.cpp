// Channels-last layout for convolutions and their neighbours.
//
// Step 1 wraps each anchor: y = op(x)  ->  y = toFirst(op<nhwc>(toLast(x))), toLast moves axis 1 to the end.
// Step 2 goes through the operations in order and sinks toFirst below every operation that can do without it,
// so that it meets the next anchor's toLast and both fold away. Parameters that broadcast are rearranged by
// recipe.
#include "compiler/Support/ConstantTensor.h"
#include "compiler/Transforms/Passes.h"
#include "dialects/DSpark/OpFactory.h"

using namespace mlir;

namespace dspark {
#define GEN_PASS_DEF_CHANNELSLASTPASS
#include "compiler/Transforms/Passes.h.inc"

namespace {

// Perm of the transpose from channels last to channels first: result axis 1 is x's last axis.
SmallVector<int64_t> toFirstPerm(int64_t rank) {
  SmallVector<int64_t> perm{0, rank - 1};
  for (int64_t i = 1; i < rank - 1; ++i)
    perm.push_back(i);
  return perm;
}
SmallVector<int64_t> toLastPerm(int64_t rank) {
  SmallVector<int64_t> perm{0};
  for (int64_t i = 2; i < rank; ++i)
    perm.push_back(i);
  perm.push_back(1);
  return perm;
}

bool isNone(Value value) { return isa<NoneType>(value.getType()); }

class Layouter {
public:
  Layouter(func::FuncOp func, std::shared_ptr<WeightStore> weights)
      : weights(std::move(weights)), builder(func.getContext()), factory(builder, analysis) {
    analysis.run(func);
  }

  void wrapAnchor(Operation *op) {
    const TensorInfo &x = analysis.info(op->getOperand(0));
    auto layout = op->getAttrOfType<StringAttr>("layout");
    bool isBytes = isa<ir::QlinearConvOp, ir::QlinearPoolOp>(op) ||
                   (isa<ir::PoolOp, ir::ResizeOp>(op) && (x.type == DType::I8 || x.type == DType::U8));
    if (!x.hasRank || x.rank() < 3 || x.rank() > 5 || (layout && layout.getValue() != "nchw") ||
        !(isBytes || isF32(op->getOperand(0))) || op->getNumResults() != 1)
      return;
    if (isa<ir::ConvOp, ir::ConvTransposeOp>(op) && !ConstantTensor::of(op->getOperand(1), weights))
      return;
    if (isa<ir::QlinearConvOp>(op) &&
        !isa_and_nonnull<ir::WeightOp, ir::ConstantOp>(op->getOperand(3).getDefiningOp()))
      return;
    builder.setInsertionPoint(op);
    SmallVector<Value> operands(op->getOperands());
    operands[0] = transpose(op->getLoc(), operands[0], toLastPerm(x.rank()));
    size_t residual = isa<ir::ConvOp>(op) ? 3 : isa<ir::QlinearConvOp>(op) ? 9 : operands.size();
    if (residual < operands.size() && !isNone(operands[residual]))
      operands[residual] = transpose(op->getLoc(), operands[residual], toLastPerm(x.rank()));
    NamedAttrList attributes(op->getAttrDictionary());
    attributes.set("layout", builder.getStringAttr("nhwc"));
    Value result = factory.make1(op->getLoc(), op->getName().stripDialect(), operands, attributes.getAttrs());
    if (result)
      replace(op, transpose(op->getLoc(), result, toFirstPerm(x.rank())));
  }

  void sink(Operation *op) {
    if (auto split = dyn_cast<ir::SplitOp>(op))
      return sinkSplit(split);
    if (op->getNumResults() != 1 || op->getNumOperands() == 0)
      return;
    builder.setInsertionPoint(op);
    Value moved;
    if (isa<ir::UnaryOp, ir::CastOp, ir::ClipOp, ir::BinaryOp, ir::CompareOp, ir::SelectOp, ir::LookupOp,
            ir::QlinearBinaryOp>(op))
      moved = sinkElementwise(op);
    else if (isa<ir::QuantizeOp, ir::DequantizeOp>(op) && hasOneScale(op))
      moved = sinkElementwise(op);
    else if (auto reduce = dyn_cast<ir::ReduceOp>(op))
      moved = sinkReduce(reduce);
    else if (auto concat = dyn_cast<ir::ConcatOp>(op))
      moved = sinkConcat(concat);
    else if (auto pad = dyn_cast<ir::PadOp>(op))
      moved = sinkPad(pad);
    else if (auto slice = dyn_cast<ir::SliceOp>(op))
      moved = sinkSlice(slice);
    else if (auto squeeze = dyn_cast<ir::SqueezeOp>(op))
      moved = sinkSqueeze(squeeze);
    else if (auto reshape = dyn_cast<ir::ReshapeOp>(op))
      moved = sinkReshape(reshape);
    else if (auto permute = dyn_cast<ir::TransposeOp>(op))
      moved = composeTransposes(permute);
    if (moved)
      replace(op, moved);
  }

private:
  static bool isF32(Value value) {
    auto type = dyn_cast<TensorType>(value.getType());
    return type && type.getElementType().isF32();
  }

  void replace(Operation *op, Value value) {
    replaceResult(op->getResult(0), value);
    analysis.forget(op);
    op->erase();
  }
  static void replaceResult(Value result, Value value) {
    if (value.getType() != result.getType())
      value.setType(result.getType()); // the operation's own type may know more dims
    result.replaceAllUsesWith(value);
  }

  // A transpose; a view where only axes of size 1 move.
  Value transpose(Location loc, Value x, ArrayRef<int64_t> perm) {
    if (!x)
      return Value();
    if (auto inner = x.getDefiningOp<ir::TransposeOp>();
        inner && inner.getPerm() && inner.getPerm()->size() == perm.size()) {
      SmallVector<int64_t> both;
      for (int64_t axis : perm)
        both.push_back((*inner.getPerm())[axis]);
      return transpose(loc, inner.getInputs()[0], both);
    }
    if (llvm::is_sorted(perm))
      return x;
    return factory.make1(loc, "transpose", {x}, {factory.attr("perm", perm)});
  }

  // x if value = toFirst(x) for that rank.
  Value beneath(Value value) {
    auto op = value.getDefiningOp<ir::TransposeOp>();
    if (!op || !op.getPerm())
      return Value();
    ArrayRef<int64_t> perm = *op.getPerm();
    return perm.size() >= 3 && perm == ArrayRef<int64_t>(toFirstPerm(int64_t(perm.size())))
               ? op.getInputs()[0]
               : Value();
  }

  // A broadcast operand for channels-last operation of `rank`: the same elements with the channel axis moved
  // last. Null if that takes a transpose of data that is not constant.
  Value rearranged(Location loc, Value value, int rank) {
    const TensorInfo &info = analysis.info(value);
    if (!info.hasRank || info.rank() > rank)
      return Value();
    if (info.rank() == 0)
      return value;
    std::vector<int64_t> dims;
    for (int i = 0; i < rank - info.rank(); ++i)
      dims.push_back(1);
    for (Dim dim : info.dims) {
      if (!dim.isConst())
        return Value();
      dims.push_back(dim.value());
    }
    std::vector<int64_t> last;
    for (int64_t axis : toLastPerm(rank))
      last.push_back(dims[size_t(axis)]);
    // Only the elements' order matters, and it is kept if at most one axis is longer than 1, or the moved one
    // is 1.
    int longer = int(llvm::count_if(dims, [](int64_t dim) { return dim != 1; }));
    bool keepsOrder = longer <= 1 || dims[1] == 1;
    if (!keepsOrder)
      return Value();
    if (auto constant = value.getDefiningOp<ir::ConstantOp>()) {
      auto elements = cast<DenseElementsAttr>(constant.getValue());
      auto type = RankedTensorType::get(last, elements.getElementType());
      return ir::ConstantOp::create(builder, loc, elements.reshape(type));
    }
    if (std::optional<ConstantTensor> constant = ConstantTensor::of(value, weights))
      return constant->reshaped(last).materialize(builder, loc, weights, ".nhwc");
    return factory.make1(loc, "reshape", {value, factory.ints(loc, last)});
  }

  static bool hasOneScale(Operation *op) {
    auto scale = dyn_cast<RankedTensorType>(op->getOperand(1).getType());
    auto block = op->getAttrOfType<IntegerAttr>("block_size");
    return scale && scale.hasStaticShape() && scale.getNumElements() == 1 && (!block || block.getInt() == 0);
  }
  // Whether an operand of an elementwise operation is a tensor that broadcasts to the result; others are
  // tables, scales and zero points.
  static bool isData(Operation *op, unsigned operand) {
    if (isa<ir::LookupOp, ir::QuantizeOp, ir::DequantizeOp>(op))
      return operand == 0;
    return !isa<ir::QlinearBinaryOp>(op) || operand == 0 || operand == 3;
  }

  Value sinkElementwise(Operation *op) {
    const TensorInfo &result = analysis.info(op->getResult(0));
    if (!result.hasRank)
      return Value();
    int rank = result.rank();
    // Worth it if the transposes that vanish are at least as many as those that appear.
    int vanish = 0, appear = 0;
    for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
      if (isNone(operand) || !isData(op, unsigned(index)))
        continue;
      const TensorInfo &info = analysis.info(operand);
      if (beneath(operand) && info.rank() == rank)
        ++vanish;
      else if (info.rank() == rank && !isBroadcastParameter(info))
        ++appear;
    }
    if (vanish == 0 || appear > vanish)
      return Value();
    SmallVector<Value> operands;
    for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
      const TensorInfo &info = analysis.info(operand);
      Value moved;
      if (isNone(operand) || !isData(op, unsigned(index)) || (info.hasRank && info.rank() == 0))
        moved = operand;
      else if (Value x = beneath(operand); x && info.rank() == rank)
        moved = x;
      else if (!(moved = rearranged(op->getLoc(), operand, rank)) && info.hasRank && info.rank() == rank)
        moved = transpose(op->getLoc(), operand, toLastPerm(rank));
      if (!moved)
        return Value();
      operands.push_back(moved);
    }
    Value inner = factory.make1(op->getLoc(), op->getName().stripDialect(), operands,
                                op->getAttrDictionary().getValue());
    return inner ? transpose(op->getLoc(), inner, toFirstPerm(rank)) : Value();
  }

  static bool isBroadcastParameter(const TensorInfo &info) {
    int longer = 0;
    for (Dim dim : info.dims)
      longer += !dim.is(1);
    return longer <= 1;
  }

  // Axis of a channels-first tensor as an axis of the channels-last one.
  static int64_t lastAxis(int64_t axis, int64_t rank) {
    axis = axis < 0 ? axis + rank : axis;
    return axis == 0 ? 0 : axis == 1 ? rank - 1 : axis - 1;
  }

  // The contents of a small integer operand; nullopt unless all are numbers.
  std::optional<SmallVector<int64_t>> numbers(Operation *op, unsigned operand) {
    if (operand >= op->getNumOperands() || isNone(op->getOperand(operand)))
      return std::nullopt;
    const TensorInfo &info = analysis.info(op->getOperand(operand));
    if (!info.hasContents || isFloat(info.type))
      return std::nullopt;
    SmallVector<int64_t> values;
    for (Dim dim : info.ints) {
      if (!dim.isConst())
        return std::nullopt;
      values.push_back(dim.value());
    }
    return values;
  }

  Value sinkReduce(ir::ReduceOp op) {
    Value x = beneath(op.getInputs()[0]);
    if (!x)
      return Value();
    int64_t rank = analysis.info(x).rank();
    SmallVector<int64_t> axes;
    if (op.getAxes())
      axes.assign(op.getAxes()->begin(), op.getAxes()->end());
    else if (std::optional<SmallVector<int64_t>> operand = numbers(op, 1))
      axes = *operand;
    if (axes.empty())
      return Value();
    bool reducesChannels = false;
    for (int64_t &axis : axes) {
      reducesChannels |= axis == 1 || axis == 1 - rank;
      axis = lastAxis(axis, rank);
    }
    bool keepsDims = op.getKeepdims().value_or(1) != 0;
    // Without kept dims the order of what remains must not have changed.
    if (!keepsDims && !reducesChannels && int64_t(axes.size()) != rank - 2 &&
        int64_t(axes.size()) != rank - 1)
      return Value();
    llvm::sort(axes);
    if (!keepsDims && !reducesChannels && axes.front() == 0 && int64_t(axes.size()) != rank - 1)
      return Value();
    Value inner = factory.make1(op.getLoc(), "reduce", {x},
                                {factory.attr("axes", ArrayRef<int64_t>(axes)),
                                 factory.attr("keepdims", keepsDims ? 1 : 0),
                                 builder.getNamedAttr("kind", op.getKindAttr())});
    if (!inner || !keepsDims)
      return inner;
    return transpose(op.getLoc(), inner, toFirstPerm(rank));
  }

  Value sinkConcat(ir::ConcatOp op) {
    int vanish = 0;
    for (Value operand : op.getInputs())
      vanish += beneath(operand) != Value();
    const TensorInfo &result = analysis.info(op->getResult(0));
    if (!result.hasRank || 2 * vanish < int(op.getInputs().size()) || vanish == 0)
      return Value();
    SmallVector<Value> operands;
    for (Value operand : op.getInputs()) {
      Value x = beneath(operand);
      operands.push_back(x ? x : transpose(op.getLoc(), operand, toLastPerm(result.rank())));
    }
    Value inner = factory.make1(op.getLoc(), "concat", operands,
                                {factory.attr("axis", lastAxis(int64_t(op.getAxis()), result.rank()))});
    return inner ? transpose(op.getLoc(), inner, toFirstPerm(result.rank())) : Value();
  }

  Value sinkPad(ir::PadOp op) {
    Value x = beneath(op.getInputs()[0]);
    std::optional<SmallVector<int64_t>> pads = x ? numbers(op, 1) : std::nullopt;
    bool hasAxes = op.getInputs().size() > 3 && !isNone(op.getInputs()[3]);
    if (!pads || hasAxes)
      return Value();
    int64_t rank = analysis.info(x).rank();
    if (int64_t(pads->size()) != 2 * rank)
      return Value();
    SmallVector<int64_t> moved(pads->size());
    for (int64_t axis = 0; axis < rank; ++axis) {
      moved[size_t(lastAxis(axis, rank))] = (*pads)[size_t(axis)];
      moved[size_t(rank + lastAxis(axis, rank))] = (*pads)[size_t(rank + axis)];
    }
    SmallVector<Value> operands(op.getInputs());
    operands[0] = x;
    operands[1] = factory.ints(op.getLoc(), moved);
    Value inner = factory.make1(op.getLoc(), "pad", operands, op->getAttrDictionary().getValue());
    return inner ? transpose(op.getLoc(), inner, toFirstPerm(rank)) : Value();
  }

  Value sinkSlice(ir::SliceOp op) {
    Value x = beneath(op.getInputs()[0]);
    std::optional<SmallVector<int64_t>> axes = x ? numbers(op, 3) : std::nullopt;
    if (!axes)
      return Value();
    int64_t rank = analysis.info(x).rank();
    for (int64_t &axis : *axes)
      axis = lastAxis(axis, rank);
    SmallVector<Value> operands(op.getInputs());
    operands[0] = x;
    operands[3] = factory.ints(op.getLoc(), *axes);
    Value inner = factory.make1(op.getLoc(), "slice", operands, op->getAttrDictionary().getValue());
    return inner ? transpose(op.getLoc(), inner, toFirstPerm(rank)) : Value();
  }

  void sinkSplit(ir::SplitOp op) {
    Value x = beneath(op.getInputs()[0]);
    if (!x)
      return;
    int64_t rank = analysis.info(x).rank();
    SmallVector<Value> operands(op.getInputs());
    operands[0] = x;
    NamedAttrList attributes(op->getAttrDictionary());
    attributes.set("axis", builder.getI64IntegerAttr(lastAxis(int64_t(op.getAxis().value_or(0)), rank)));
    builder.setInsertionPoint(op);
    FailureOr<SmallVector<Value>> parts =
        factory.make(op.getLoc(), "split", operands, attributes.getAttrs(), op->getNumResults());
    if (failed(parts))
      return;
    for (auto [result, part] : llvm::zip(op->getResults(), *parts))
      replaceResult(result, transpose(op.getLoc(), part, toFirstPerm(rank)));
    analysis.forget(op);
    op->erase();
  }

  // reshape(toFirst(x [B, H, W, C]) to [B, C, H*W]) -> toFirst(reshape(x to [B, H*W, C])), as before
  // attention and in detection heads.
  Value sinkReshape(ir::ReshapeOp op) {
    Value x = beneath(op.getInputs()[0]);
    const TensorInfo &result = analysis.info(op->getResult(0));
    if (!x || !result.hasRank || result.rank() != 3)
      return Value();
    const TensorInfo &from = analysis.info(x);
    Dim channels = from.dims.back();
    if (from.rank() < 4 || !channels.isConst() || !result.dims[1].provablyEqual(channels) ||
        !result.dims[0].provablyEqual(from.dims[0]) || !result.dims[2].isConst())
      return Value();
    Value dims = factory.ints(op.getLoc(), {0, result.dims[2].value(), channels.value()});
    Value inner = factory.make1(op.getLoc(), "reshape", {x, dims});
    return inner ? transpose(op.getLoc(), inner, toFirstPerm(3)) : Value();
  }

  // squeeze(toFirst(x), axes) -> transpose(squeeze(x, moved axes)), often no transpose at all
  Value sinkSqueeze(ir::SqueezeOp op) {
    Value x = beneath(op.getInputs()[0]);
    std::optional<SmallVector<int64_t>> axes = x ? numbers(op, 1) : std::nullopt;
    if (!axes || axes->empty())
      return Value();
    int64_t rank = analysis.info(x).rank();
    SmallVector<int64_t> moved;
    for (int64_t axis : *axes)
      moved.push_back(lastAxis(axis, rank));
    // What remains, in the order the result wants it, as positions in squeeze(x).
    SmallVector<int64_t> kept, perm;
    for (int64_t axis = 0; axis < rank; ++axis)
      if (!llvm::is_contained(moved, axis))
        kept.push_back(axis);
    for (int64_t axis : toFirstPerm(rank))
      if (const int64_t *at = llvm::find(kept, axis); at != kept.end())
        perm.push_back(at - kept.begin());
    Value inner = factory.make1(op.getLoc(), "squeeze", {x, factory.ints(op.getLoc(), moved)});
    return inner ? transpose(op.getLoc(), inner, perm) : Value();
  }

  Value composeTransposes(ir::TransposeOp op) {
    auto inner = op.getInputs()[0].getDefiningOp<ir::TransposeOp>();
    if (!inner || !inner.getPerm() || !op.getPerm() || inner.getPerm()->size() != op.getPerm()->size())
      return Value();
    return transpose(op.getLoc(), op.getInputs()[0], *op.getPerm());
  }

  std::shared_ptr<WeightStore> weights;
  OpBuilder builder;
  ir::DimAnalysis analysis;
  ir::OpFactory factory;
};

struct ChannelsLastPass : impl::ChannelsLastPassBase<ChannelsLastPass> {
  explicit ChannelsLastPass(std::shared_ptr<WeightStore> store)
      : weights(store ? std::move(store) : std::make_shared<WeightStore>()) {}
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (func.isExternal())
      return;
    Layouter layouter(func, weights);
    forEach(func, [&](Operation *op) {
      if (isa<ir::ConvOp, ir::ConvTransposeOp, ir::PoolOp, ir::ResizeOp, ir::QlinearConvOp,
              ir::QlinearPoolOp>(op))
        layouter.wrapAnchor(op);
    });
    forEach(func, [&](Operation *op) { layouter.sink(op); });
  }

private:
  // In program order, tolerating that `visit` erases the operation.
  static void forEach(func::FuncOp func, llvm::function_ref<void(Operation *)> visit) {
    SmallVector<Operation *> ops;
    func.walk([&](Operation *op) { ops.push_back(op); });
    for (Operation *op : ops)
      visit(op);
  }
  std::shared_ptr<WeightStore> weights;
};

} // namespace

std::unique_ptr<Pass> createChannelsLastPass(std::shared_ptr<WeightStore> weights) {
  return std::make_unique<ChannelsLastPass>(std::move(weights));
}

} // namespace dspark
