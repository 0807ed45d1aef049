// The MLIR of one fused kernel, before and after lowering.
#pragma once
#include "compiler/Target/FusedCodegen.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/OwningOpRef.h"

namespace dspark::codegen {

/// Everything buildFusedKernel() and lowerFusedKernel() use.
void registerCodegenDialects(mlir::DialectRegistry &registry);

/// A module with one function that walks the rows and has a linalg.generic per tile:
///
///   for each row                               operands with inner stride 0: loaded here, once
///     for j = 0, W .. main                     linalg.generic over W elements
///     the tail, n1 - main elements             linalg.generic over the rest (AVX2, AVX-512: one masked
///     vector),
///                                              or over one element at a time (baseline has no masked loads)
mlir::OwningOpRef<mlir::ModuleOp> buildFusedKernel(mlir::MLIRContext &context, const FusedKernelSpec &spec,
                                                   Isa level);

/// linalg -> vector -> LLVM dialect, in place.
mlir::LogicalResult lowerFusedKernel(mlir::ModuleOp module, Isa level);

} // namespace dspark::codegen
