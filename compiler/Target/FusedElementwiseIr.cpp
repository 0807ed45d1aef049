// Kernels of programs without reductions: a linalg.generic per tile, whose body is the program.
#include "compiler/Target/FusedIrBuilder.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace dspark::codegen {
using namespace mlir;
namespace {

class ElementwiseKernel : public FusedIrBuilder {
  using FusedIrBuilder::FusedIrBuilder;

  void emitStart(Value) override {
    width = index(tileWidth(level));
    main = arith::SubIOp::create(b, loc, columns, arith::RemUIOp::create(b, loc, columns, width));
  }

  void emitRow(ArrayRef<Value> operands) override {
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

  /// linalg.generic over elements [j, j + size) of the row; `size` is `length` where it is known, else
  /// kDynamic.
  void emitTile(ArrayRef<Value> operands, Value j, int64_t size, Value length) {
    SmallVector<Value> inputs, outputs;
    SmallVector<AffineMap> maps;
    AffineMap all = b.getDimIdentityMap(), none = AffineMap::get(1, 0, b.getContext());
    for (size_t k = 0; k < operandCount(); ++k) {
      Value operand =
          isScalar(k) ? operands[k] : view(advance(operands[k], k, j), elementType(k), size, length);
      (isInput(k) ? inputs : outputs).push_back(operand);
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
      values.push_back(asFloat(inner, math, argument));
    ArrayRef<Value> all(values);
    size_t count = spec.program.inputs;
    linalg::YieldOp::create(inner, loc,
                            emitProgram(math, spec.program, all.take_front(count), all.drop_front(count)));
  }

  Value width, main;
};

} // namespace

OwningOpRef<ModuleOp> buildElementwiseKernel(MLIRContext &context, const FusedKernelSpec &spec, Isa level) {
  return ElementwiseKernel(context, spec, level).build();
}

} // namespace dspark::codegen
