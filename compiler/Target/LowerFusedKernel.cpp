#include "compiler/Target/FusedKernelIr.h"
#include "compiler/Target/IsaTarget.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/ConvertToLLVM/ToLLVMPass.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/Transforms/Passes.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"

namespace dspark::codegen {
using namespace mlir;
namespace {

// A tile of known size becomes whole vectors; the tail becomes one vector under a mask of its length.
LogicalResult vectorizeTiles(ModuleOp module, Isa level) {
  SmallVector<linalg::GenericOp> tiles;
  module.walk([&](linalg::GenericOp op) { tiles.push_back(op); });
  IRRewriter rewriter(module.getContext());
  for (linalg::GenericOp tile : tiles) {
    SmallVector<int64_t> sizes;
    if (tile.hasDynamicShape())
      sizes.push_back(vectorWidth(level));
    rewriter.setInsertionPoint(tile);
    SmallVector<bool> scalable(sizes.size(), false);
    FailureOr<linalg::VectorizationResult> result = linalg::vectorize(rewriter, tile, sizes, scalable);
    if (failed(result))
      return tile.emitError("fused kernel: this tile does not vectorise");
    rewriter.replaceOp(tile, result->replacements);
  }
  return success();
}

} // namespace

void registerCodegenDialects(DialectRegistry &registry) {
  registry.insert<arith::ArithDialect, cf::ControlFlowDialect, func::FuncDialect, linalg::LinalgDialect,
                  LLVM::LLVMDialect, math::MathDialect, memref::MemRefDialect, scf::SCFDialect,
                  vector::VectorDialect>();
  arith::registerConvertArithToLLVMInterface(registry);
  cf::registerConvertControlFlowToLLVMInterface(registry);
  registerConvertFuncToLLVMInterface(registry);
  registerConvertMathToLLVMInterface(registry);
  registerConvertMemRefToLLVMInterface(registry);
  ub::registerConvertUBToLLVMInterface(registry);
  vector::registerConvertVectorToLLVMInterface(registry);
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
}

LogicalResult lowerFusedKernel(ModuleOp module, Isa level) {
  if (failed(vectorizeTiles(module, level)))
    return failure();
  PassManager pm(module.getContext());
  pm.addNestedPass<func::FuncOp>(vector::createLowerVectorMaskPass());
  pm.addPass(createConvertVectorToLLVMPass()); // also lowers vector.transfer, which convert-to-llvm does not
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(createConvertToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  return pm.run(module);
}

} // namespace dspark::codegen
