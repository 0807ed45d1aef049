// What a caller is told about a result's shape before the first run.
#include "compiler/Transforms/Passes.h"
#include "dialects/DSpark/DimAnalysis.h"

using namespace mlir;

namespace dspark {
#define GEN_PASS_DEF_RESOLVEOUTPUTDIMSPASS
#include "compiler/Transforms/Passes.h.inc"

namespace {

struct ResolveOutputDimsPass : impl::ResolveOutputDimsPassBase<ResolveOutputDimsPass> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (func.isExternal())
      return;
    ir::DimAnalysis analysis;
    analysis.run(func);
    Builder builder(&getContext());
    for (auto [index, value] : llvm::enumerate(func.front().getTerminator()->getOperands())) {
      const TensorInfo &info = analysis.info(value);
      if (!info.hasRank)
        continue;
      SmallVector<Attribute> dims;
      for (Dim dim : info.dims)
        dims.push_back(builder.getStringAttr(analysis.isInputExpression(dim) ? dim.str() : "?"));
      func.setResultAttr(unsigned(index), ir::kDimsAttr, builder.getArrayAttr(dims));
    }
  }
};

} // namespace
} // namespace dspark
