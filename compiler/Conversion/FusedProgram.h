// From a dspark.fused body to the program that kernels interpret and code generation compiles
// (kernels/fused/program.h).
#pragma once
#include "dialects/DSpark/DSpark.h"
#include "kernels/fused/program.h"
#include "mlir/IR/Builders.h"

namespace dspark {

/// Whether an operation can be an instruction of a fused program: f32 (comparisons: i1) elementwise, of a
/// kind that programs hold. Constants must be splats.
bool isFusible(mlir::Operation *op);

/// The same for a reduction of rows, if it is over the last axes of its operand: reduce, softmax or
/// layer_norm in f32, of a kind that programs can express.
bool isFusibleReduction(mlir::Operation *op);

/// The program of a fused body; fails with an error at the offending operation.
mlir::FailureOr<FusedProgram> buildFusedProgram(ir::FusedOp op);

/// Whether a result has fewer elements than the full shape: the step is then "fused_reduce", else "fused".
bool isReduced(const FusedProgram &program);

/// The attributes of the step (kernels/fused/program.h).
mlir::DictionaryAttr fusedConfig(const FusedProgram &program, mlir::MLIRContext *context);

} // namespace dspark
