// Shape subgraphs fold to dim expressions first, because everything after wants to know shapes; this is where
// most importers fail. All knowledge is the catalogue's shape functions' (kernels/common/shape.h), by way of
// DimAnalysis.
#include "compiler/Transforms/Passes.h"
#include "dialects/DSpark/DimAnalysis.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace dspark {
#define GEN_PASS_DEF_FOLDSHAPESPASS
#include "compiler/Transforms/Passes.h.inc"

namespace {

// The contents of `info` as an operation before `op`; null if they are not all known before a run.
Value materialize(Operation *op, const TensorInfo &info, const ir::DimAnalysis &analysis,
                  OpBuilder &builder) {
  if (!info.hasContents || !info.hasRank || info.rank() > 1)
    return Value();
  for (Dim dim : info.dims)
    if (!dim.isConst())
      return Value();
  auto type = cast<RankedTensorType>(ir::typeFromInfo(info, op->getContext()));
  builder.setInsertionPoint(op);
  if (info.type == DType::F32 && int64_t(info.floats.size()) == type.getNumElements()) {
    SmallVector<float> values(info.floats.begin(), info.floats.end());
    return ir::ConstantOp::create(builder, op->getLoc(), DenseElementsAttr::get(type, ArrayRef(values)));
  }
  if (isFloat(info.type) || int64_t(info.ints.size()) != type.getNumElements())
    return Value();
  bool isConstant = true;
  for (Dim value : info.ints) {
    if (!analysis.isInputExpression(value))
      return Value();
    isConstant &= value.isConst();
  }
  if (isConstant) {
    auto element = dyn_cast<IntegerType>(type.getElementType());
    if (!element)
      return Value();
    SmallVector<APInt> values;
    for (Dim value : info.ints)
      values.push_back(
          APInt(element.getWidth(), uint64_t(value.value()), element.isSignless(), /*implicitTrunc=*/true));
    return ir::ConstantOp::create(builder, op->getLoc(), DenseElementsAttr::get(type, values));
  }
  if (info.type != DType::I64)
    return Value();
  SmallVector<std::string> texts;
  for (Dim value : info.ints)
    texts.push_back(value.str());
  SmallVector<StringRef> exprs(texts.begin(), texts.end());
  return ir::DimsOp::create(builder, op->getLoc(), type, builder.getStrArrayAttr(exprs));
}

// Moves the taken block's operations before the If and uses its yields instead of the results.
void inlineBranch(ir::IfOp op, bool condition) {
  Block &taken = (condition ? op.getThenBody() : op.getElseBody()).front();
  Operation *yield = taken.getTerminator();
  SmallVector<Value> results(yield->getOperands());
  op->getBlock()->getOperations().splice(op->getIterator(), taken.getOperations(), taken.begin(),
                                         std::prev(taken.end()));
  op->replaceAllUsesWith(results);
  op->erase();
}

// Gives the results the most precise type that is known. Users that demand equal types (yields of a loop)
// keep theirs.
void refineResultTypes(Operation *op, ir::DimAnalysis &analysis) {
  for (Value result : op->getResults()) {
    auto current = dyn_cast<TensorType>(result.getType());
    const TensorInfo &info = analysis.info(result);
    if (!current || !info.hasRank || (current.hasRank() && current.getRank() != info.rank()))
      continue;
    TensorType refined = ir::typeFromInfo(info, op->getContext());
    if (refined && refined != current)
      result.setType(refined);
  }
}

class Folder {
public:
  explicit Folder(func::FuncOp func) : builder(func.getContext()), func(func) {}

  void run() {
    for (unsigned i = 0; i < func.getNumArguments(); ++i)
      analysis.bindArgument(func, i);
    foldBlock(func.front());
    SmallVector<Type> results(func.front().getTerminator()->getOperandTypes());
    func.setType(FunctionType::get(func.getContext(), func.getArgumentTypes(), results));
  }

private:
  void foldBlock(Block &block) {
    // Branches are spliced in front of the next operation, so the iterator sees them.
    for (auto it = block.begin(); it != block.end();) {
      Operation *op = &*it;
      if (auto branch = dyn_cast<ir::IfOp>(op)) {
        const TensorInfo &condition = analysis.info(branch.getCondition());
        if (condition.hasContents && condition.ints.size() == 1 && condition.ints[0].isConst()) {
          Operation *before = it == block.begin() ? nullptr : &*std::prev(it);
          bool taken = condition.ints[0].value() != 0;
          analysis.forget(branch);
          inlineBranch(branch, taken);
          it = before ? std::next(before->getIterator()) : block.begin();
          continue;
        }
        foldBlock(branch.getThenBody().front());
        foldBlock(branch.getElseBody().front());
      } else if (auto loop = dyn_cast<ir::LoopOp>(op)) {
        foldBlock(loop.getBody().front());
      }
      ++it;
      analysis.visit(op);
      foldOperation(op);
    }
  }

  void foldOperation(Operation *op) {
    if (op->hasTrait<OpTrait::IsTerminator>() ||
        isa<ir::ConstantOp, ir::WeightOp, ir::DimsOp, ir::NoneOp>(op))
      return;
    refineResultTypes(op, analysis);
    if (!isa<ir::ShapeInterface>(op))
      return;
    for (Value result : op->getResults()) {
      if (result.use_empty())
        continue;
      TensorInfo info = analysis.info(result);
      Value folded = materialize(op, info, analysis, builder);
      if (!folded || folded.getType() != result.getType())
        continue;
      analysis.setInfo(folded, std::move(info));
      result.replaceAllUsesWith(folded);
    }
    if (isOpTriviallyDead(op)) {
      analysis.forget(op);
      op->erase();
    }
  }

  OpBuilder builder;
  func::FuncOp func;
  ir::DimAnalysis analysis;
};

struct FoldShapesPass : impl::FoldShapesPassBase<FoldShapesPass> {
  void runOnOperation() override {
    if (!getOperation().isExternal())
      Folder(getOperation()).run();
  }
};

} // namespace
} // namespace dspark
