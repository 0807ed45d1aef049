// Weight-only int8 as exporters spell it: cast(w_int8) * scale or dequantize_linear in front of a MatMul or
// Gather. Folding that into f32 would make the model four times as large; instead the int8 bytes go into the
// kernels.
#include "compiler/Transforms/Passes.h"
#include "dialects/DSpark/DSpark.h"
#include "dialects/DSpark/OpFactory.h"

using namespace mlir;

namespace dspark {
#define GEN_PASS_DEF_KEEPWEIGHTSQUANTIZEDPASS
#include "compiler/Transforms/Passes.h.inc"

namespace {

struct Dequantised {
  Value weight; // int8, [rows, columns]
  Value scale;  // f32 constant
};

bool isConstant(Value value) { return isa_and_nonnull<ir::WeightOp, ir::ConstantOp>(value.getDefiningOp()); }

// value = cast(int8 weight) * scale
std::optional<Dequantised> match(Value value) {
  auto mul = value.getDefiningOp<ir::BinaryOp>();
  if (!mul || mul.getKind() != "mul" || mul.getInputs().size() != 2)
    return std::nullopt;
  for (unsigned side = 0; side < 2; ++side) {
    auto cast = mul.getInputs()[side].getDefiningOp<ir::CastOp>();
    Value scale = mul.getInputs()[1 - side];
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!cast || !isConstant(scale) || !cast.getInputs()[0].getDefiningOp<ir::WeightOp>() || !type ||
        type.getRank() != 2 || !type.getElementType().isF32() || cast->getResult(0).getType() != type)
      continue;
    auto weight = dyn_cast<RankedTensorType>(cast.getInputs()[0].getType());
    auto scaleType = dyn_cast<RankedTensorType>(scale.getType());
    if (weight && weight.getElementType().isSignlessInteger(8) && scaleType && scaleType.hasStaticShape())
      return Dequantised{cast.getInputs()[0], scale};
  }
  return std::nullopt;
}

class Rewriter {
public:
  explicit Rewriter(func::FuncOp func) : builder(func.getContext()), factory(builder, analysis) {
    analysis.run(func);
  }

  void rewrite(Operation *op) {
    builder.setInsertionPoint(op);
    Value replaced;
    if (auto matmul = dyn_cast<ir::MatmulOp>(op))
      replaced = rewriteMatmul(matmul);
    else
      replaced = rewriteGather(cast<ir::GatherOp>(op));
    if (!replaced || replaced.getType() != op->getResult(0).getType())
      return;
    op->getResult(0).replaceAllUsesWith(replaced);
    analysis.forget(op);
    op->erase();
  }

private:
  // The scale as one number or [columns]; null if it varies along rows.
  Value columnScale(Location loc, Value scale, int64_t columns) {
    auto type = cast<RankedTensorType>(scale.getType());
    if (type.getNumElements() == 1)
      return type.getRank() == 0
                 ? scale
                 : factory.make1(loc, "reshape", {scale, factory.ints(loc, ArrayRef<int64_t>())});
    bool alongColumns = type.getNumElements() == columns && type.getDimSize(type.getRank() - 1) == columns;
    if (!alongColumns)
      return Value();
    return type.getRank() == 1 ? scale : factory.make1(loc, "reshape", {scale, factory.ints(loc, {columns})});
  }

  // dequantize_linear of constant bytes with one scale or one per column; its operands are matmul_dequant's.
  Value rewriteDequantized(ir::MatmulOp op) {
    auto b = op.getInputs()[1].getDefiningOp<ir::DequantizeOp>();
    bool isPlain = op.getInputs().size() == 2 && !op.getTransA().value_or(0) &&
                   op.getActivation().value_or("").empty() && op.getPacked().value_or("").empty();
    if (!b || !isPlain || b.getBlockSize().value_or(0) != 0 || !isConstant(b.getInputs()[0]) ||
        !cast<TensorType>(b->getResult(0).getType()).getElementType().isF32())
      return Value();
    auto type = dyn_cast<RankedTensorType>(b.getInputs()[0].getType());
    auto scale = dyn_cast<RankedTensorType>(b.getInputs()[1].getType());
    bool isTransposed = op.getTransB().value_or(0) != 0;
    int64_t axis = int64_t(b.getAxis().value_or(1)), columns = isTransposed ? 0 : 1;
    if (!type || type.getRank() != 2 || !scale || !scale.hasStaticShape() ||
        !scale.getElementType().isF32() ||
        (scale.getNumElements() != 1 && (axis < 0 ? axis + 2 : axis) != columns))
      return Value();
    SmallVector<Value> operands{op.getInputs()[0], b.getInputs()[0], b.getInputs()[1]};
    if (b.getInputs().size() > 2)
      operands.push_back(b.getInputs()[2]);
    return factory.make1(op.getLoc(), "matmul_dequant", operands,
                         {factory.attr("trans_b", int64_t(isTransposed))});
  }

  Value rewriteMatmul(ir::MatmulOp op) {
    if (Value rewritten = rewriteDequantized(op))
      return rewritten;
    std::optional<Dequantised> b = match(op.getInputs()[1]);
    bool isPlain = op.getInputs().size() == 2 && !op.getTransA().value_or(0) && !op.getTransB().value_or(0) &&
                   op.getActivation().value_or("").empty();
    if (!b || !isPlain || !cast<TensorType>(op.getInputs()[0].getType()).getElementType().isF32())
      return Value();
    int64_t columns = cast<RankedTensorType>(b->weight.getType()).getDimSize(1);
    Value scale = columnScale(op.getLoc(), b->scale, columns);
    return scale ? factory.make1(op.getLoc(), "matmul_dequant", {op.getInputs()[0], b->weight, scale})
                 : Value();
  }

  Value rewriteGather(ir::GatherOp op) {
    std::optional<Dequantised> table = match(op.getInputs()[0]);
    if (!table || op.getAxis().value_or(0) != 0)
      return Value();
    Location loc = op.getLoc();
    auto scaleType = cast<RankedTensorType>(table->scale.getType());
    int64_t rows = cast<RankedTensorType>(table->weight.getType()).getDimSize(0);
    Value indices = op.getInputs()[1], scale = table->scale;
    if (scaleType.getNumElements() != 1) {
      bool perRow =
          scaleType.getRank() == 2 && scaleType.getDimSize(0) == rows && scaleType.getDimSize(1) == 1;
      if (!perRow)
        return Value();
      scale = factory.make1(loc, "gather", {scale, indices}, {factory.attr("axis", 0)});
    }
    Value bytes = factory.make1(loc, "gather", {table->weight, indices}, {factory.attr("axis", 0)});
    Value widened = factory.make1(loc, "cast", {bytes}, {factory.attr("to", int64_t(DType::F32))});
    return factory.make1(loc, "binary", {widened, scale}, {factory.attr("kind", "mul")});
  }

  OpBuilder builder;
  ir::DimAnalysis analysis;
  ir::OpFactory factory;
};

struct KeepWeightsQuantizedPass : impl::KeepWeightsQuantizedPassBase<KeepWeightsQuantizedPass> {
  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    Rewriter rewriter(getOperation());
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (isa<ir::MatmulOp, ir::GatherOp>(op))
        ops.push_back(op);
    });
    for (Operation *op : ops)
      rewriter.rewrite(op);
  }
};

} // namespace
} // namespace dspark
