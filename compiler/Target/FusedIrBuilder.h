// What builders of fused kernels share: the function, its arguments, loops, and memrefs over the caller's
// memory.
#pragma once
#include "compiler/Target/FusedCodegen.h"
#include "compiler/Target/FusedRules.h"
#include "compiler/Target/IsaTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace dspark::codegen {

class FusedIrBuilder {
public:
  FusedIrBuilder(mlir::MLIRContext &context, const FusedKernelSpec &spec, Isa level);
  virtual ~FusedIrBuilder() = default;

  mlir::OwningOpRef<mlir::ModuleOp> build();

protected:
  using Value = mlir::Value;

  /// The body of one row; `operands` are the row's pointers, or the only values of scalar operands that are
  /// read.
  virtual void emitRow(mlir::ArrayRef<Value> operands) = 0;
  /// What comes before the loop over rows.
  virtual void emitStart(Value pointers) {}

  size_t operandCount() const { return spec.inner.size(); }
  bool isInput(size_t operand) const { return int(operand) < spec.program.inputs; }
  bool isScalar(size_t operand) const { return spec.inner[operand] == 0; }
  mlir::Type elementType(size_t operand);
  Value index(int64_t value);
  Value toIndex(Value i64);
  Value toI64(Value index);
  /// The pointer `elements` further.
  Value advance(Value pointer, mlir::Type type, Value elements);
  Value advance(Value pointer, size_t operand, Value j) {
    return advance(pointer, elementType(operand), toI64(j));
  }
  /// Element `i` of the array of pointers or of i64.
  Value loadEntry(Value array, mlir::Type type, size_t i);
  void forRange(Value begin, Value end, Value step, llvm::function_ref<void(Value)> body);
  /// A memref of `size` elements, `length` where that is dynamic, over memory the caller owns; the cast
  /// disappears when memrefs become descriptors.
  Value view(Value pointer, mlir::Type type, int64_t size, Value length);
  /// An operand as f32.
  static Value asFloat(mlir::OpBuilder &inner, ScalarMath &math, Value value);

  mlir::OpBuilder b;
  mlir::Location loc;
  const FusedKernelSpec &spec;
  Isa level;
  Value columns;                      // elements of a row
  mlir::SmallVector<Value> constants; // f32, the values of parameterConstants()

private:
  void emitRows(Value pointers, Value rows, Value strides);
  void loadConstants(Value pointers);

  mlir::LLVMTypeConverter converter;
};

/// For a program without reductions, and for one with them.
mlir::OwningOpRef<mlir::ModuleOp> buildElementwiseKernel(mlir::MLIRContext &, const FusedKernelSpec &, Isa);
mlir::OwningOpRef<mlir::ModuleOp> buildRowKernel(mlir::MLIRContext &, const FusedKernelSpec &, Isa);

} // namespace dspark::codegen
