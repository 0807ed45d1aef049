#include "compiler/Target/FusedKernelIr.h"
#include "compiler/Target/FusedRules.h"
#include "compiler/Target/IsaTarget.h"
#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace dspark::codegen {
using namespace mlir;
namespace {

class KernelBuilder {
public:
  KernelBuilder(MLIRContext &context, const FusedKernelSpec &spec, Isa level)
      : b(&context), loc(b.getUnknownLoc()), spec(spec), level(level), converter(&context) {}

  OwningOpRef<ModuleOp> build() {
    OwningOpRef<ModuleOp> module = ModuleOp::create(b, loc);
    b.setInsertionPointToStart(module->getBody());
    Type pointer = LLVM::LLVMPointerType::get(b.getContext()), i64 = b.getI64Type();
    auto function =
        func::FuncOp::create(b, loc, spec.symbol(), b.getFunctionType({pointer, i64, i64, pointer}, {}));
    b.setInsertionPointToStart(function.addEntryBlock());
    emitRows(function.getArgument(0), toIndex(function.getArgument(1)), toIndex(function.getArgument(2)),
             function.getArgument(3));
    func::ReturnOp::create(b, loc);
    return module;
  }

private:
  size_t operandCount() const { return spec.inner.size(); }
  bool isScalar(size_t operand) const { return spec.inner[operand] == 0; }
  Type elementType(size_t operand) {
    return spec.types[operand] == DType::Bool ? Type(b.getI8Type()) : Type(b.getF32Type());
  }
  Value index(int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }
  Value toIndex(Value i64) { return arith::IndexCastOp::create(b, loc, b.getIndexType(), i64); }
  Value toI64(Value index) { return arith::IndexCastOp::create(b, loc, b.getI64Type(), index); }
  Value advance(Value pointer, size_t operand, Value i64) {
    return LLVM::GEPOp::create(b, loc, pointer.getType(), elementType(operand), pointer,
                               ArrayRef<Value>{i64});
  }
  /// Element `i` of the array of pointers or of i64.
  Value loadEntry(Value array, Type type, size_t i) {
    Value at = LLVM::GEPOp::create(b, loc, array.getType(), type, array, ArrayRef<LLVM::GEPArg>{int32_t(i)});
    return LLVM::LoadOp::create(b, loc, type, at);
  }

  void emitRows(Value pointers, Value rows, Value columns, Value strides) {
    SmallVector<Value> bases, rowStrides;
    for (size_t k = 0; k < operandCount(); ++k) {
      bases.push_back(loadEntry(pointers, pointers.getType(), k));
      rowStrides.push_back(loadEntry(strides, b.getI64Type(), k));
    }
    loadConstants(pointers);
    Value width = index(tileWidth(level));
    Value main = arith::SubIOp::create(b, loc, columns, arith::RemUIOp::create(b, loc, columns, width));
    forRange(index(0), rows, index(1), [&](Value row) {
      SmallVector<Value> operands; // the row's pointer, or its only value
      for (size_t k = 0; k < operandCount(); ++k) {
        Value at = advance(bases[k], k, arith::MulIOp::create(b, loc, toI64(row), rowStrides[k]));
        operands.push_back(isScalar(k) ? Value(LLVM::LoadOp::create(b, loc, elementType(k), at)) : at);
      }
      emitRow(operands, columns, main, width);
    });
  }

  /// The values of the program's constants: f64 in `params`, which holds two numbers per instruction and
  /// whose address lies behind the operands. Every value is an f32 widened, so narrowing it is exact.
  void loadConstants(Value pointers) {
    SmallVector<int> parameters = parameterConstants(spec.program);
    if (parameters.empty())
      return;
    Value params = loadEntry(pointers, pointers.getType(), operandCount());
    for (int instruction : parameters) {
      Value wide = loadEntry(params, b.getF64Type(), size_t(2 * instruction));
      constants.push_back(arith::TruncFOp::create(b, loc, b.getF32Type(), wide));
    }
  }

  void emitRow(ArrayRef<Value> operands, Value columns, Value main, Value width) {
    forRange(index(0), main, width, [&](Value j) { emitTile(operands, j, tileWidth(level), {}); });
    if (!hasMaskedVectors(level)) {
      forRange(main, columns, index(1), [&](Value j) { emitTile(operands, j, 1, {}); });
      return;
    }
    Value vector = index(vectorWidth(level));
    forRange(main, columns, vector, [&](Value j) {
      Value rest = arith::MinUIOp::create(b, loc, arith::SubIOp::create(b, loc, columns, j), vector);
      emitTile(operands, j, ShapedType::kDynamic, rest);
    });
  }

  void forRange(Value begin, Value end, Value step, llvm::function_ref<void(Value)> body) {
    auto loop = scf::ForOp::create(b, loc, begin, end, step);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    body(loop.getInductionVar());
  }

  /// linalg.generic over elements [j, j + size) of the row; `size` is `length` where it is known, else
  /// kDynamic.
  void emitTile(ArrayRef<Value> operands, Value j, int64_t size, Value length) {
    SmallVector<Value> inputs, outputs;
    SmallVector<AffineMap> maps;
    AffineMap all = b.getDimIdentityMap(), none = AffineMap::get(1, 0, b.getContext());
    for (size_t k = 0; k < operandCount(); ++k) {
      Value operand = isScalar(k) ? operands[k] : view(advance(operands[k], k, toI64(j)), k, size, length);
      (int(k) < spec.program.inputs ? inputs : outputs).push_back(operand);
      maps.push_back(isScalar(k) ? none : all);
    }
    inputs.append(constants);
    maps.insert(maps.begin() + spec.program.inputs, constants.size(), none);
    linalg::GenericOp::create(b, loc, inputs, outputs, maps, {utils::IteratorType::parallel},
                              [&](OpBuilder &inner, Location, ValueRange arguments) {
                                emitBody(inner, arguments.take_front(inputs.size()));
                              });
  }

  void emitBody(OpBuilder &inner, ValueRange arguments) {
    ScalarMath math(inner, loc, level);
    SmallVector<Value> values;
    for (Value argument : arguments)
      values.push_back(argument.getType().isF32() ? argument : boolToFloat(inner, math, argument));
    ArrayRef<Value> all(values);
    size_t count = spec.program.inputs;
    linalg::YieldOp::create(inner, loc,
                            emitProgram(math, spec.program, all.take_front(count), all.drop_front(count)));
  }
  Value boolToFloat(OpBuilder &inner, ScalarMath &math, Value byte) {
    Value zero = arith::ConstantOp::create(inner, loc, inner.getI8IntegerAttr(0));
    return math.fromBool(arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::ne, byte, zero));
  }

  /// A memref over memory the caller owns; the cast disappears when memrefs become descriptors.
  Value view(Value pointer, size_t operand, int64_t size, Value length) {
    auto type = MemRefType::get({size}, elementType(operand));
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

  OpBuilder b;
  Location loc;
  const FusedKernelSpec &spec;
  Isa level;
  LLVMTypeConverter converter;
  SmallVector<Value> constants; // f32, set before the loops
};

} // namespace

OwningOpRef<ModuleOp> buildFusedKernel(MLIRContext &context, const FusedKernelSpec &spec, Isa level) {
  return KernelBuilder(context, spec, level).build();
}

} // namespace dspark::codegen
