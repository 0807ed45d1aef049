// Operations that only move elements work on bytes as well as on floats:
//
//   op(dequantize(x)) -> dequantize(op(x))
//
// with one scale for all. They then move a quarter of the bytes, and the dequantize_linear meets the
// operation that can use the bytes, or the quantize_linear that takes it away.
#include "compiler/Support/QuantizedValue.h"
#include "compiler/Transforms/Passes.h"

using namespace mlir;

namespace dspark {
#define GEN_PASS_DEF_SINKDEQUANTIZEPASS
#include "compiler/Transforms/Passes.h.inc"

namespace {

class Sinker {
public:
  explicit Sinker(func::FuncOp func) : builder(func.getContext()), factory(builder, analysis) {
    analysis.run(func);
  }

  void sink(Operation *op) {
    if (op->getNumResults() != 1 || op->getNumOperands() == 0)
      return;
    std::optional<QuantizedValue> x = QuantizedValue::of(op->getOperand(0));
    if (!x)
      return;
    builder.setInsertionPoint(op);
    SmallVector<Value> operands(op->getOperands());
    operands[0] = x->q;
    if (isa<ir::ConcatOp>(op)) {
      for (size_t i = 1; i < operands.size(); ++i) {
        std::optional<QuantizedValue> other = QuantizedValue::of(operands[i]);
        if (!other || !other->hasSameParameters(*x))
          return;
        operands[i] = other->q;
      }
    } else if (!movesFirstOperand(op)) {
      return;
    }
    rebuild(op, *x, operands);
  }

private:
  void rebuild(Operation *op, const QuantizedValue &x, ArrayRef<Value> operands) {
    auto kernel = dyn_cast<ir::KernelOp>(op);
    DictionaryAttr attributes =
        kernel ? kernel.getConfig().value_or(DictionaryAttr::get(op->getContext())) : op->getAttrDictionary();
    Value moved = factory.make1(op->getLoc(), ir::catalogueName(op), operands, attributes.getValue());
    if (!moved)
      return;
    SmallVector<Value> dequantize{moved, x.scale};
    if (x.zero)
      dequantize.push_back(x.zero);
    Value result = factory.make1(op->getLoc(), "dequantize_linear", dequantize);
    if (!result || result.getType() != op->getResult(0).getType())
      return;
    op->getResult(0).replaceAllUsesWith(result);
    analysis.forget(op);
    op->erase();
  }

  OpBuilder builder;
  ir::DimAnalysis analysis;
  ir::OpFactory factory;
};

struct SinkDequantizePass : impl::SinkDequantizePassBase<SinkDequantizePass> {
  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    Sinker sinker(getOperation());
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) { ops.push_back(op); });
    for (Operation *op : ops)
      sinker.sink(op);
  }
};

} // namespace
} // namespace dspark
