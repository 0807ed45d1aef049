// reshape(matmul(reshape(x [B, T, K] to [B*T, K]), w, b) to [B, T, N]) -> matmul(x, w, b)
//
// Exporters write a linear layer over several axes so (GPT-2's projections). A reshape costs nothing by
// itself, but it stands between the product and the activation or residual that would be its epilogue.
#include "compiler/Transforms/Passes.h"
#include "dialects/DSpark/OpFactory.h"

using namespace mlir;

namespace dspark {
#define GEN_PASS_DEF_LIFTRESHAPESPASS
#include "compiler/Transforms/Passes.h.inc"

namespace {

class Lifter {
public:
  explicit Lifter(func::FuncOp func) : builder(func.getContext()), factory(builder, analysis) {
    analysis.run(func);
  }

  void lift(ir::ReshapeOp outer) {
    auto matmul = outer.getInputs()[0].getDefiningOp<ir::MatmulOp>();
    if (!matmul || !matmul->getResult(0).hasOneUse() || !isPlain(matmul))
      return;
    auto inner = matmul.getInputs()[0].getDefiningOp<ir::ReshapeOp>();
    if (!inner || !keepsRows(inner.getInputs()[0], matmul.getInputs()[0], outer->getResult(0)))
      return;
    builder.setInsertionPoint(outer);
    SmallVector<Value> operands(matmul.getInputs());
    operands[0] = inner.getInputs()[0];
    Value lifted = factory.make1(matmul.getLoc(), "matmul", operands, matmul->getAttrDictionary().getValue());
    if (!lifted)
      return;
    lifted.setType(outer->getResult(0).getType()); // the reshape's own type may know more dims
    outer->getResult(0).replaceAllUsesWith(lifted);
    for (Operation *gone : {outer.getOperation(), matmul.getOperation()}) {
      analysis.forget(gone);
      gone->erase();
    }
  }

private:
  // Rows times a matrix, and at most a bias per column.
  bool isPlain(ir::MatmulOp matmul) {
    const TensorInfo &w = analysis.info(matmul.getInputs()[1]);
    auto transposed = matmul->getAttrOfType<IntegerAttr>("trans_a");
    bool hasPlainBias = matmul.getInputs().size() < 3 || isa<NoneType>(matmul.getInputs()[2].getType()) ||
                        analysis.info(matmul.getInputs()[2]).rank() == 1;
    return w.hasRank && w.rank() == 2 && (!transposed || transposed.getInt() == 0) && hasPlainBias &&
           matmul.getInputs().size() <= 3;
  }

  // Whether `flat` [M, K] is x [..., K] and the result is [..., N] with the same leading dims.
  bool keepsRows(Value x, Value flat, Value result) {
    const TensorInfo &from = analysis.info(x), &rows = analysis.info(flat), &to = analysis.info(result);
    if (!from.hasRank || !rows.hasRank || !to.hasRank || rows.rank() != 2 || from.rank() < 2 ||
        from.rank() != to.rank() || !from.dims.back().provablyEqual(rows.dims[1]))
      return false;
    for (int i = 0; i + 1 < from.rank(); ++i)
      if (!from.dims[i].provablyEqual(to.dims[i]))
        return false;
    return true;
  }

  OpBuilder builder;
  ir::DimAnalysis analysis;
  ir::OpFactory factory;
};

struct LiftReshapesPass : impl::LiftReshapesPassBase<LiftReshapesPass> {
  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    Lifter lifter(getOperation());
    SmallVector<ir::ReshapeOp> reshapes;
    getOperation().walk([&](ir::ReshapeOp op) { reshapes.push_back(op); });
    for (ir::ReshapeOp op : reshapes)
      lifter.lift(op);
  }
};

} // namespace
} // namespace dspark
