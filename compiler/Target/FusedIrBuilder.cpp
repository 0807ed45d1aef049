#include "compiler/Target/FusedIrBuilder.h"
#include "compiler/Target/FusedKernelIr.h"
#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace dspark::codegen {
using namespace mlir;

FusedIrBuilder::FusedIrBuilder(MLIRContext &context, const FusedKernelSpec &spec, Isa level)
    : b(&context), loc(b.getUnknownLoc()), spec(spec), level(level), converter(&context) {}

OwningOpRef<ModuleOp> FusedIrBuilder::build() {
  OwningOpRef<ModuleOp> module = ModuleOp::create(b, loc);
  b.setInsertionPointToStart(module->getBody());
  Type pointer = LLVM::LLVMPointerType::get(b.getContext()), i64 = b.getI64Type();
  auto function =
      func::FuncOp::create(b, loc, spec.symbol(), b.getFunctionType({pointer, i64, i64, pointer}, {}));
  b.setInsertionPointToStart(function.addEntryBlock());
  columns = toIndex(function.getArgument(2));
  emitRows(function.getArgument(0), toIndex(function.getArgument(1)), function.getArgument(3));
  func::ReturnOp::create(b, loc);
  return module;
}

Type FusedIrBuilder::elementType(size_t operand) {
  return spec.types[operand] == DType::Bool ? Type(b.getI8Type()) : Type(b.getF32Type());
}
Value FusedIrBuilder::index(int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }
Value FusedIrBuilder::toIndex(Value i64) { return arith::IndexCastOp::create(b, loc, b.getIndexType(), i64); }
Value FusedIrBuilder::toI64(Value index) { return arith::IndexCastOp::create(b, loc, b.getI64Type(), index); }
Value FusedIrBuilder::advance(Value pointer, Type type, Value elements) {
  return LLVM::GEPOp::create(b, loc, pointer.getType(), type, pointer, ArrayRef<Value>{elements});
}
Value FusedIrBuilder::loadEntry(Value array, Type type, size_t i) {
  Value at = LLVM::GEPOp::create(b, loc, array.getType(), type, array, ArrayRef<LLVM::GEPArg>{int32_t(i)});
  return LLVM::LoadOp::create(b, loc, type, at);
}

void FusedIrBuilder::emitRows(Value pointers, Value rows, Value strides) {
  SmallVector<Value> bases, rowStrides;
  for (size_t k = 0; k < operandCount(); ++k) {
    bases.push_back(loadEntry(pointers, pointers.getType(), k));
    rowStrides.push_back(loadEntry(strides, b.getI64Type(), k));
  }
  loadConstants(pointers);
  emitStart(pointers);
  forRange(index(0), rows, index(1), [&](Value row) {
    SmallVector<Value> operands;
    for (size_t k = 0; k < operandCount(); ++k) {
      Value at = advance(bases[k], elementType(k), arith::MulIOp::create(b, loc, toI64(row), rowStrides[k]));
      bool isLoaded = isScalar(k) && isInput(k);
      operands.push_back(isLoaded ? Value(LLVM::LoadOp::create(b, loc, elementType(k), at)) : at);
    }
    emitRow(operands);
  });
}

// The values are f64 in `params`, which holds two numbers per instruction and whose address lies behind the
// operands. Every value is an f32 widened, so narrowing it is exact.
void FusedIrBuilder::loadConstants(Value pointers) {
  SmallVector<int> parameters = parameterConstants(spec.program);
  if (parameters.empty())
    return;
  Value params = loadEntry(pointers, pointers.getType(), operandCount());
  for (int instruction : parameters) {
    Value wide = loadEntry(params, b.getF64Type(), size_t(2 * instruction));
    constants.push_back(arith::TruncFOp::create(b, loc, b.getF32Type(), wide));
  }
}

void FusedIrBuilder::forRange(Value begin, Value end, Value step, llvm::function_ref<void(Value)> body) {
  auto loop = scf::ForOp::create(b, loc, begin, end, step);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  body(loop.getInductionVar());
}

Value FusedIrBuilder::view(Value pointer, Type element, int64_t size, Value length) {
  auto type = MemRefType::get({size}, element);
  auto descriptor = MemRefDescriptor::poison(b, loc, converter.convertType(type));
  descriptor.setAllocatedPtr(b, loc, pointer);
  descriptor.setAlignedPtr(b, loc, pointer);
  descriptor.setConstantOffset(b, loc, 0);
  if (length)
    descriptor.setSize(b, loc, 0, toI64(length));
  else
    descriptor.setConstantSize(b, loc, 0, size);
  descriptor.setConstantStride(b, loc, 0, 1);
  return UnrealizedConversionCastOp::create(b, loc, type, Value(descriptor)).getResult(0);
}

Value FusedIrBuilder::asFloat(OpBuilder &inner, ScalarMath &math, Value value) {
  if (value.getType().isF32())
    return value;
  Location loc = value.getLoc();
  Value zero = arith::ConstantOp::create(inner, loc, inner.getI8IntegerAttr(0));
  return math.fromBool(arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::ne, value, zero));
}

OwningOpRef<ModuleOp> buildFusedKernel(MLIRContext &context, const FusedKernelSpec &spec, Isa level) {
  return spec.program.rowAxes > 0 ? buildRowKernel(context, spec, level)
                                  : buildElementwiseKernel(context, spec, level);
}

} // namespace dspark::codegen
