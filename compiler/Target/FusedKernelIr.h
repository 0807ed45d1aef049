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
///   for each row              operands with inner stride 0 are loaded here, once
///     for j = 0, W .. main    a tile of W = tileWidth() elements
///     for j = main .. n1      the tail: at most a vector under a mask (AVX2, AVX-512), or one element at a
///                             time (the baseline has no masked loads)
///
/// With reductions there are several such loops per row (FusedRowIr.cpp).
mlir::OwningOpRef<mlir::ModuleOp> buildFusedKernel(mlir::MLIRContext &context, const FusedKernelSpec &spec,
                                                   Isa level);

/// linalg -> vector -> LLVM dialect, in place.
mlir::LogicalResult lowerFusedKernel(mlir::ModuleOp module, Isa level);

} // namespace dspark::codegen
