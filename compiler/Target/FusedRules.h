// What each instruction of a fused program becomes in a linalg body. One table per category; a kind without
// an entry is left to the interpreter.
#pragma once
#include "compiler/Target/ScalarMath.h"
#include "kernels/fused/program.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

namespace dspark::codegen {

/// Emits the program over the values of its inputs (f32) and returns its results. canGenerate(program) holds.
llvm::SmallVector<mlir::Value> emitProgram(ScalarMath &m, const FusedProgram &program,
                                           llvm::ArrayRef<mlir::Value> inputs);

} // namespace dspark::codegen
