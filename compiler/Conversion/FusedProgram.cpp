#include "compiler/Conversion/FusedProgram.h"
#include "dialects/DSpark/Infer.h"
#include "kernels/elementwise/kinds.h"

using namespace mlir;

namespace dspark {
namespace {

std::string_view view(StringRef text) { return {text.data(), text.size()}; }

// Not the kinds that are defined on integers or bools only, nor those that have no generated code as accurate
// as the kernel (range reduction of sin, cos and tan): they would pull their whole region into the
// interpreter.
bool isFloatKind(UnaryKind kind) {
  switch (kind) {
  case UnaryKind::kCount:
  case UnaryKind::k_bitnot:
  case UnaryKind::k_not:
  case UnaryKind::k_isnan:
  case UnaryKind::k_isinf:
  case UnaryKind::k_sin:
  case UnaryKind::k_cos:
  case UnaryKind::k_tan:
    return false;
  default:
    return true;
  }
}
bool isFloatKind(BinaryKind kind) {
  switch (kind) {
  case BinaryKind::k_add:
  case BinaryKind::k_sub:
  case BinaryKind::k_mul:
  case BinaryKind::k_div:
  case BinaryKind::k_pow:
  case BinaryKind::k_min:
  case BinaryKind::k_max:
  case BinaryKind::k_prelu:
    return true;
  default:
    return false;
  }
}

bool isF32(Value value) {
  auto tensor = dyn_cast<TensorType>(value.getType());
  return tensor && tensor.getElementType().isF32();
}
bool isBool(Value value) {
  auto tensor = dyn_cast<TensorType>(value.getType());
  return tensor && tensor.getElementType().isSignlessInteger(1);
}

std::optional<float> splat(Value value) {
  auto constant = value.getDefiningOp<ir::ConstantOp>();
  auto elements = constant ? dyn_cast<DenseFPElementsAttr>(constant.getValue()) : DenseFPElementsAttr();
  if (!elements || !elements.isSplat() || !elements.getElementType().isF32())
    return std::nullopt;
  return elements.getSplatValue<APFloat>().convertToFloat();
}

// Exponents that generated code turns into products, quotients and roots (compiler/Target).
bool isSimpleExponent(Value value) {
  std::optional<float> exponent = splat(value);
  return exponent && llvm::is_contained({-1.0f, -0.5f, 0.0f, 0.5f, 1.0f, 2.0f, 3.0f, 4.0f}, *exponent);
}

class Builder {
public:
  explicit Builder(ir::FusedOp op) : op(op) { program.inputs = int(op.getNumOperands()); }

  FailureOr<FusedProgram> run() {
    Block &body = op.getBody().front();
    for (auto [index, argument] : llvm::enumerate(body.getArguments()))
      numbers[argument] = int(index);
    for (Operation &inner : body.without_terminator())
      if (failed(add(&inner)))
        return inner.emitError("cannot be part of a fused program"), failure();
    for (Value yielded : body.getTerminator()->getOperands())
      program.results.push_back(numbers.lookup(yielded));
    return std::move(program);
  }

private:
  LogicalResult add(Operation *inner) {
    FusedInstruction instruction{};
    ValueRange operands = inner->getOperands();
    if (auto constant = dyn_cast<ir::ConstantOp>(inner)) {
      std::optional<float> value = splat(constant);
      if (!value)
        return failure();
      instruction.category = FusedCategory::Constant;
      instruction.alpha = *value;
      operands = ValueRange();
    } else if (auto unary = dyn_cast<ir::UnaryOp>(inner)) {
      UnaryKind kind = unaryKind(view(unary.getKind()));
      UnaryDefaults defaults = unaryDefaults(kind);
      instruction.category = FusedCategory::Unary;
      instruction.kind = uint8_t(kind);
      instruction.alpha = float(unary.getAlpha() ? unary.getAlpha()->convertToDouble() : defaults.alpha);
      instruction.beta = float(unary.getBeta() ? unary.getBeta()->convertToDouble() : defaults.beta);
    } else if (auto binary = dyn_cast<ir::BinaryOp>(inner)) {
      instruction.category = FusedCategory::Binary;
      instruction.kind = uint8_t(binaryKind(view(binary.getKind())));
    } else if (auto compare = dyn_cast<ir::CompareOp>(inner)) {
      instruction.category = FusedCategory::Compare;
      instruction.kind = uint8_t(compareKind(view(compare.getKind())));
    } else if (isa<ir::SelectOp>(inner)) {
      instruction.category = FusedCategory::Select;
    } else if (isa<ir::ClipOp>(inner)) {
      instruction.category = FusedCategory::Clip;
      instruction.alpha = -std::numeric_limits<float>::infinity();
      instruction.beta = std::numeric_limits<float>::infinity();
      for (unsigned bound = 1; bound < operands.size(); ++bound) {
        if (isa<NoneType>(operands[bound].getType()))
          continue;
        std::optional<float> value = splat(operands[bound]);
        if (!value)
          return failure();
        (bound == 1 ? instruction.alpha : instruction.beta) = *value;
      }
      operands = operands.take_front(1);
    } else {
      return failure();
    }
    int *slots[] = {&instruction.a, &instruction.b, &instruction.c};
    for (auto [index, operand] : llvm::enumerate(operands)) {
      auto it = numbers.find(operand);
      if (index >= 3 || it == numbers.end())
        return failure();
      *slots[index] = it->second;
    }
    numbers[inner->getResult(0)] = program.inputs + int(program.code.size());
    program.code.push_back(instruction);
    return success();
  }

  ir::FusedOp op;
  FusedProgram program;
  llvm::DenseMap<Value, int> numbers;
};

} // namespace

bool isFusible(Operation *op) {
  if (auto constant = dyn_cast<ir::ConstantOp>(op))
    return splat(constant).has_value();
  if (auto unary = dyn_cast<ir::UnaryOp>(op))
    return isF32(op->getOperand(0)) && isFloatKind(unaryKind(view(unary.getKind())));
  if (auto binary = dyn_cast<ir::BinaryOp>(op))
    return isF32(op->getOperand(0)) && isF32(op->getOperand(1)) &&
           isFloatKind(binaryKind(view(binary.getKind()))) &&
           (binary.getKind() != "pow" || isSimpleExponent(op->getOperand(1)));
  if (isa<ir::CompareOp>(op))
    return isF32(op->getOperand(0)) && isF32(op->getOperand(1));
  if (isa<ir::SelectOp>(op))
    return isBool(op->getOperand(0)) && isF32(op->getOperand(1)) && isF32(op->getOperand(2));
  if (isa<ir::ClipOp>(op)) {
    for (Value bound : op->getOperands().drop_front(1))
      if (!isa<NoneType>(bound.getType()) && !splat(bound))
        return false;
    return isF32(op->getOperand(0));
  }
  return false;
}

FailureOr<FusedProgram> buildFusedProgram(ir::FusedOp op) { return Builder(op).run(); }

DictionaryAttr fusedConfig(const FusedProgram &program, MLIRContext *context) {
  ::mlir::Builder builder(context);
  SmallVector<int64_t> code;
  SmallVector<double> params;
  for (const FusedInstruction &i : program.code) {
    code.append({int64_t(i.category), int64_t(i.kind), i.a, i.b, i.c});
    params.append({double(i.alpha), double(i.beta)});
  }
  SmallVector<int64_t> results(program.results.begin(), program.results.end());
  return builder.getDictionaryAttr({builder.getNamedAttr("program", builder.getDenseI64ArrayAttr(code)),
                                    builder.getNamedAttr("params", builder.getDenseF64ArrayAttr(params)),
                                    builder.getNamedAttr("results", builder.getDenseI64ArrayAttr(results))});
}

} // namespace dspark
