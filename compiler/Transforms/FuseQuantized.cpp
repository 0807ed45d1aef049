// What is computed between dequantize_linear and quantize_linear becomes an operation on bytes:
//
//   quantize(add, sub or mul(dequantize(a), dequantize(b)))          -> qlinear_binary
//   quantize(average pool or spatial mean(dequantize(x)))            -> qlinear_pool
//   quantize(any elementwise function of dequantize(x) alone)        -> lookup in a table of 256 entries
//   quantize(concat(dequantize(x) ...))                              -> concat of lookups
//   quantize(relu or clip(any of these))                             -> lookup of it
//
// The bytes are those of the f32 form, but for a last bit of an average or a transcendental function at a
// tie. Constants that stay quantised after that are dequantised when the plan is written.
#include "compiler/Support/ByteTable.h"
#include "compiler/Support/DequantizedConstant.h"
#include "compiler/Transforms/Passes.h"

using namespace mlir;

namespace dspark {
#define GEN_PASS_DEF_FUSEQUANTIZEDPASS
#include "compiler/Transforms/Passes.h.inc"

namespace {

class Fuser {
public:
  Fuser(func::FuncOp func, std::shared_ptr<WeightStore> weights)
      : weights(std::move(weights)), builder(func.getContext()), factory(builder, analysis) {
    analysis.run(func);
  }

  void fuse(ir::QuantizeOp op) {
    std::optional<QuantizedValue> y = QuantizedValue::madeBy(op);
    if (!y || op->use_empty())
      return;
    builder.setInsertionPoint(op);
    Value x = op.getInputs()[0], fused = tableOf(op.getLoc(), x, *y);
    if (!fused)
      fused = boundedOf(op.getLoc(), x, *y);
    replace(op, fused);
  }

  // Matmuls' weights are left to KeepWeightsQuantized.
  void foldConstant(ir::DequantizeOp op) {
    auto isFactor = [&](OpOperand &use) {
      return isa<ir::MatmulOp>(use.getOwner()) && use.getOperandNumber() == 1;
    };
    if (llvm::all_of(op->getResult(0).getUses(), isFactor))
      return;
    std::optional<ConstantTensor> constant = dequantizedConstant(op->getResult(0), weights);
    if (!constant)
      return;
    builder.setInsertionPoint(op);
    replace(op, constant->materialize(builder, op.getLoc(), weights, ".dequantized"));
  }

private:
  void replace(Operation *op, Value value) {
    if (!value)
      return;
    if (value.getType() != op->getResult(0).getType())
      value.setType(op->getResult(0).getType()); // the operation's own type may know more dims
    op->getResult(0).replaceAllUsesWith(value);
  }

  bool sameShape(Value a, Value b) {
    const TensorInfo &x = analysis.info(a), &y = analysis.info(b);
    if (!x.hasRank || !y.hasRank || x.rank() != y.rank())
      return false;
    for (int i = 0; i < x.rank(); ++i)
      if (!x.dims[i].provablyEqual(y.dims[i]))
        return false;
    return true;
  }

  // The bytes of `value`, a function of one tensor of bytes, in y's form.
  Value tableOf(Location loc, Value value, const QuantizedValue &y) {
    std::optional<QuantizedValue> plain = QuantizedValue::of(value);
    if (plain && plain->hasSameParameters(y))
      return plain->q;
    std::optional<ByteTable> table = ByteTable::of(value);
    if (!table || !sameShape(value, table->x.q))
      return Value();
    std::optional<std::vector<std::byte>> bytes = table->quantized(y);
    return bytes ? lookup(loc, table->x.q, *bytes, y.type()) : Value();
  }

  Value lookup(Location loc, Value x, const std::vector<std::byte> &bytes, DType type) {
    if (ByteTable::isIdentity(bytes, analysis.info(x).type, type))
      return x;
    FailureOr<Value> entries = factory.constant(loc, type, {int64_t(bytes.size())}, bytes);
    return succeeded(entries) ? factory.make1(loc, "lookup", {x, *entries}) : Value();
  }

  // Bounds of a real value are bounds of its bytes, since rounding keeps order.
  Value boundedOf(Location loc, Value value, const QuantizedValue &y) {
    Operation *op = value.getDefiningOp();
    std::optional<Bounds> bounds =
        op && op->getNumOperands() > 0 ? Bounds::of(op, op->getOperand(0)) : std::nullopt;
    if (!bounds)
      return bytesOf(loc, value, y);
    std::optional<float> scale = y.scaleNumber();
    std::optional<int> zero = y.zeroNumber();
    Value bytes = scale && zero ? bytesOf(loc, op->getOperand(0), y) : Value();
    if (!bytes)
      return Value();
    ByteTable table{{bytes, y.scale, y.zero}, {}};
    int first = y.type() == DType::I8 ? -128 : 0;
    for (int i = 0; i < 256; ++i) {
      float real = float(first + i - *zero) * *scale;
      table.values.push_back(std::min(std::max(real, float(bounds->low)), float(bounds->high)));
    }
    return lookup(loc, bytes, *table.quantized(y), y.type());
  }

  Value bytesOf(Location loc, Value value, const QuantizedValue &y) {
    Operation *op = value.getDefiningOp();
    if (auto binary = dyn_cast_or_null<ir::BinaryOp>(op))
      return binaryOf(loc, binary, y);
    if (auto pool = dyn_cast_or_null<ir::PoolOp>(op))
      return poolOf(loc, pool, y);
    if (auto reduce = dyn_cast_or_null<ir::ReduceOp>(op))
      return meanOf(loc, reduce, y);
    if (auto concat = dyn_cast_or_null<ir::ConcatOp>(op))
      return concatOf(loc, concat, y);
    return Value();
  }

  Value binaryOf(Location loc, ir::BinaryOp op, const QuantizedValue &y) {
    StringRef kind = op.getKind();
    if (op.getInputs().size() != 2 || (kind != "add" && kind != "sub" && kind != "mul"))
      return Value();
    std::optional<QuantizedValue> a = QuantizedValue::of(op.getInputs()[0]),
                                  b = QuantizedValue::of(op.getInputs()[1]);
    if (!a || !b)
      return Value();
    return factory.make1(loc, "qlinear_binary",
                         {a->q, a->scale, a->zeroOperand(loc, factory), b->q, b->scale,
                          b->zeroOperand(loc, factory), y.scale, y.zeroOperand(loc, factory)},
                         {builder.getNamedAttr("kind", op.getKindAttr())});
  }

  Value poolOperation(Location loc, Value x, const QuantizedValue &y, ArrayRef<NamedAttribute> attributes) {
    std::optional<QuantizedValue> q = QuantizedValue::of(x);
    if (!q)
      return Value();
    return factory.make1(loc, "qlinear_pool",
                         {q->q, q->scale, q->zeroOperand(loc, factory), y.scale, y.zeroOperand(loc, factory)},
                         attributes);
  }
  Value poolOf(Location loc, ir::PoolOp op, const QuantizedValue &y) {
    if (op.getKind() != "average" || op->getNumResults() != 1)
      return Value();
    NamedAttrList attributes(op->getAttrDictionary());
    for (const char *name : {"kind", "p", "storage_order"})
      attributes.erase(name);
    return poolOperation(loc, op.getInputs()[0], y, attributes.getAttrs());
  }
  // The mean over all spatial axes.
  Value meanOf(Location loc, ir::ReduceOp op, const QuantizedValue &y) {
    Value x = op.getInputs()[0];
    auto type = dyn_cast<RankedTensorType>(x.getType());
    int64_t axes = type ? type.getRank() : 0;
    if (op.getKind() != "mean" || axes < 3 || axes > 5)
      return Value();
    SmallVector<int64_t> reduced;
    if (op.getAxes())
      reduced.assign(op.getAxes()->begin(), op.getAxes()->end());
    else if (op.getInputs().size() > 1 && analysis.info(op.getInputs()[1]).hasContents)
      for (Dim dim : analysis.info(op.getInputs()[1]).ints)
        reduced.push_back(dim.isConst() ? dim.value() : axes);
    for (int64_t &axis : reduced)
      axis = axis < 0 ? axis + axes : axis;
    llvm::sort(reduced);
    SmallVector<int64_t> spatial = llvm::to_vector(llvm::seq<int64_t>(2, axes));
    if (reduced != spatial)
      return Value();
    Value pooled = poolOperation(loc, x, y, {});
    if (!pooled || op.getKeepdims().value_or(1) != 0)
      return pooled;
    return factory.make1(loc, "squeeze", {pooled, factory.ints(loc, spatial)});
  }

  Value concatOf(Location loc, ir::ConcatOp op, const QuantizedValue &y) {
    SmallVector<Value> parts;
    for (Value operand : op.getInputs()) {
      Value bytes = QuantizedValue::of(operand) ? tableOf(loc, operand, y) : Value();
      if (!bytes)
        return Value();
      parts.push_back(bytes);
    }
    return factory.make1(loc, "concat", parts, {factory.attr("axis", int64_t(op.getAxis()))});
  }

  std::shared_ptr<WeightStore> weights;
  OpBuilder builder;
  ir::DimAnalysis analysis;
  ir::OpFactory factory;
};

struct FuseQuantizedPass : impl::FuseQuantizedPassBase<FuseQuantizedPass> {
  explicit FuseQuantizedPass(std::shared_ptr<WeightStore> store)
      : weights(store ? std::move(store) : std::make_shared<WeightStore>()) {}
  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    Fuser fuser(getOperation(), weights);
    SmallVector<ir::QuantizeOp> quantized;
    getOperation().walk([&](ir::QuantizeOp op) { quantized.push_back(op); });
    for (ir::QuantizeOp op : quantized)
      fuser.fuse(op);
    getOperation().walk([&](ir::DequantizeOp op) { fuser.foldConstant(op); });
  }
  std::shared_ptr<WeightStore> weights;
};

} // namespace

std::unique_ptr<Pass> createFuseQuantizedPass(std::shared_ptr<WeightStore> weights) {
  return std::make_unique<FuseQuantizedPass>(std::move(weights));
}

} // namespace dspark
