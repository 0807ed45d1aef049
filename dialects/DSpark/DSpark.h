// The `dspark` dialect's C++ classes.
#pragma once
#include "kernels/common/shape.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/DSpark/DSparkDialect.h.inc"
#include "dialects/DSpark/DSparkInterfaces.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/DSpark/DSparkTypes.h.inc"
#define GET_OP_CLASSES
#include "dialects/DSpark/DSparkOps.h.inc"

namespace dspark::ir {

/// Largest dspark.constant, in bytes.
inline constexpr int64_t kMaxConstantBytes = 8192;
/// Function argument attribute: the input's dims as an array of strings, numbers or symbols.
inline constexpr llvm::StringLiteral kDimsAttr = "dspark.dims";
/// Function argument attribute (unit): the caller's memory is updated where it lies, by the one operation
/// that uses it.
inline constexpr llvm::StringLiteral kStateAttr = "dspark.state";
/// Function argument and result attribute: the model's name for an input or output.
inline constexpr llvm::StringLiteral kNameAttr = "dspark.name";

} // namespace dspark::ir
