// LLVM dialect -> optimised LLVM IR -> bytes of a relocatable ELF object.
#pragma once
#include "kernels/common/isa.h"
#include "mlir/IR/BuiltinOps.h"
#include "runtime/base/Status.h"
#include "llvm/ADT/SmallVector.h"

namespace dspark::codegen {

StatusOr<llvm::SmallVector<char, 0>> emitObject(mlir::ModuleOp module, Isa level);

} // namespace dspark::codegen
