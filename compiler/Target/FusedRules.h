// What each instruction of a fused program becomes in a linalg body. One table per category; a kind without
// an entry is left to the interpreter.
#pragma once
#include "compiler/Target/ScalarMath.h"
#include "kernels/fused/program.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

namespace dspark::codegen {

/// The Constant instructions whose values generated code reads from the step's `params`, so that it serves
/// any values. The others, exponents of pow, decide what the code is.
llvm::SmallVector<int> parameterConstants(const FusedProgram &program);

/// One instruction over the values of its operands, by number. Not a reduction.
mlir::Value emitInstruction(ScalarMath &m, const FusedProgram &program, const FusedInstruction &instruction,
                            llvm::ArrayRef<mlir::Value> values);

/// Emits a program without reductions over the values of its inputs and of its parameterConstants() (all f32)
/// and returns its results. canGenerate(program) holds.
llvm::SmallVector<mlir::Value> emitProgram(ScalarMath &m, const FusedProgram &program,
                                           llvm::ArrayRef<mlir::Value> inputs,
                                           llvm::ArrayRef<mlir::Value> constants);

} // namespace dspark::codegen
