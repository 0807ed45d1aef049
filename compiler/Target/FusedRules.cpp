#include "compiler/Target/FusedRules.h"
#include "compiler/Target/FusedCodegen.h"
#include "kernels/elementwise/kinds.h"
#include <array>
#include <optional>

namespace dspark {
namespace codegen {
namespace {
using mlir::Value;
using Cmp = ScalarMath::Cmp;
using UnaryRule = Value (*)(ScalarMath &m, Value x, float alpha, float beta);
using BinaryRule = Value (*)(ScalarMath &m, Value x, Value y);

Value whereNegative(ScalarMath &m, Value x, Value yes) {
  return m.select(m.cmp(Cmp::OLT, x, m.constant(0)), yes, x);
}
Value hardSigmoid(ScalarMath &m, Value x, float alpha, float beta) {
  return m.clamp(m.add(m.mul(x, m.constant(alpha)), m.constant(beta)), 0, 1);
}
// alpha (e^x - 1) below 0, gamma-free.
Value elu(ScalarMath &m, Value x, float alpha) {
  return whereNegative(m, x, m.mul(m.constant(alpha), m.expm1(x)));
}

// NaN stays NaN, either zero gives +0.
Value sign(ScalarMath &m, Value x) {
  Value positiveOrZero = m.select(m.cmp(Cmp::OGT, x, m.constant(0)), m.constant(1), m.add(x, m.constant(0)));
  return m.select(m.cmp(Cmp::OLT, x, m.constant(0)), m.constant(-1), positiveOrZero);
}
Value isInf(ScalarMath &m, Value x, bool negative, bool positive) {
  auto is = [&](bool wanted, float value) {
    return m.cmp(Cmp::OEQ, x, m.constant(wanted ? value : __builtin_nanf("")));
  };
  return m.fromBool(m.either(is(negative, -__builtin_inff()), is(positive, __builtin_inff())));
}

constexpr auto kUnaryRules = [] {
  std::array<UnaryRule, size_t(UnaryKind::kCount)> rule{};
  auto on = [&](UnaryKind kind) -> UnaryRule & { return rule[size_t(kind)]; };
#define RULE(kind, expression)                                                                               \
  on(UnaryKind::k_##kind) = [](ScalarMath &m, Value x, [[maybe_unused]] float alpha,                         \
                               [[maybe_unused]] float beta) -> Value { return expression; }
  RULE(abs, m.abs(x));
  RULE(neg, m.neg(x));
  RULE(exp, m.exp(x));
  RULE(log, m.log(x));
  RULE(sqrt, m.sqrt(x));
  RULE(rsqrt, m.div(m.constant(1), m.sqrt(x)));
  RULE(reciprocal, m.div(m.constant(1), x));
  RULE(floor, m.floor(x));
  RULE(ceil, m.ceil(x));
  RULE(round, m.round(x));
  RULE(relu, whereNegative(m, x, m.constant(0)));
  RULE(leaky_relu, whereNegative(m, x, m.mul(x, m.constant(alpha))));
  RULE(elu, elu(m, x, alpha));
  RULE(selu, m.mul(m.constant(beta), elu(m, x, alpha)));
  RULE(celu, whereNegative(m, x, m.mul(m.constant(alpha), m.expm1(m.div(x, m.constant(alpha))))));
  // NaN is above nothing: 0, as ONNX's function bodies of these two have it.
  RULE(thresholded_relu, m.select(m.cmp(Cmp::OGT, x, m.constant(alpha)), x, m.constant(0)));
  RULE(hard_sigmoid, hardSigmoid(m, x, alpha, beta));
  RULE(hard_swish, m.mul(x, hardSigmoid(m, x, alpha, beta)));
  RULE(sigmoid, m.sigmoid(x));
  RULE(silu, m.mul(x, m.sigmoid(x)));
  RULE(swish, m.mul(x, m.sigmoid(m.mul(m.constant(alpha), x))));
  RULE(tanh, m.tanh(x));
  RULE(erf, m.erf(x));
  RULE(gelu, m.gelu(x));
  RULE(gelu_tanh, m.geluTanh(x));
  RULE(softplus, m.softplus(x));
  RULE(softsign, m.div(x, m.add(m.constant(1), m.abs(x))));
  RULE(mish, m.mish(x));
  // x + bias below -lambd, x - bias above lambd, else 0
  RULE(shrink,
       m.select(m.cmp(Cmp::OLT, x, m.constant(-alpha)), m.add(x, m.constant(beta)),
                m.select(m.cmp(Cmp::OGT, x, m.constant(alpha)), m.sub(x, m.constant(beta)), m.constant(0))));
  RULE(asin, m.asin(x));
  RULE(acos, m.acos(x));
  RULE(atan, m.atan(x));
  RULE(sinh, m.sinh(x));
  RULE(cosh, m.cosh(x));
  RULE(asinh, m.asinh(x));
  RULE(acosh, m.acosh(x));
  RULE(atanh, m.atanh(x));
  RULE(not, m.fromBool(m.cmp(Cmp::OEQ, x, m.constant(0))));
  RULE(isnan, m.fromBool(m.cmp(Cmp::UNO, x, x)));
  RULE(isinf, isInf(m, x, alpha != 0, beta != 0));
  RULE(sign, sign(m, x));
#undef RULE
  return rule;
}();

constexpr auto kBinaryRules = [] {
  std::array<BinaryRule, size_t(BinaryKind::kCount)> rule{};
  auto on = [&](BinaryKind kind) -> BinaryRule & { return rule[size_t(kind)]; };
#define RULE(kind, expression)                                                                               \
  on(BinaryKind::k_##kind) = [](ScalarMath &m, Value x, Value y) -> Value { return expression; }
  RULE(add, m.add(x, y));
  RULE(sub, m.sub(x, y));
  RULE(mul, m.mul(x, y));
  RULE(div, m.div(x, y));
  RULE(min, m.min(x, y));
  RULE(max, m.max(x, y));
  RULE(and, m.fromBool(m.both(m.nonZero(x), m.nonZero(y))));
  RULE(or, m.fromBool(m.either(m.nonZero(x), m.nonZero(y))));
  RULE(xor, m.fromBool(m.differ(m.nonZero(x), m.nonZero(y))));
  RULE(prelu, whereNegative(m, x, m.mul(x, y)));
#undef RULE
  return rule;
}();

constexpr std::array kCompareRules = {Cmp::OEQ, Cmp::OLT, Cmp::OLE, Cmp::OGT, Cmp::OGE};
static_assert(kCompareRules.size() == size_t(CompareKind::kCount) && int(CompareKind::k_eq) == 0 &&
              int(CompareKind::k_lt) == 1 && int(CompareKind::k_le) == 2 && int(CompareKind::k_gt) == 3);

// Powers with exact or nearly exact forms. e^(b log a) would lose up to 7 bits, so other exponents have no
// rule.
struct PowerRule {
  float exponent;
  Value (*emit)(ScalarMath &m, Value x);
};
// pow(-inf, 1/2) is inf and pow(-0, 1/2) is 0, unlike sqrt.
Value powerHalf(ScalarMath &m, Value x) {
  Value minusInf = m.cmp(Cmp::OEQ, x, m.constant(-__builtin_inff()));
  return m.select(minusInf, m.constant(__builtin_inff()), m.sqrt(m.add(x, m.constant(0))));
}
constexpr PowerRule kPowerRules[] = {
    {0.0f, [](ScalarMath &m, Value) { return m.constant(1); }},
    {1.0f, [](ScalarMath &, Value x) { return x; }},
    {2.0f, [](ScalarMath &m, Value x) { return m.mul(x, x); }},
    {3.0f, [](ScalarMath &m, Value x) { return m.mul(m.mul(x, x), x); }},
    {4.0f,
     [](ScalarMath &m, Value x) {
       Value square = m.mul(x, x);
       return m.mul(square, square);
     }},
    {0.5f, powerHalf},
    {-0.5f, [](ScalarMath &m, Value x) { return m.div(m.constant(1), powerHalf(m, x)); }},
    {-1.0f, [](ScalarMath &m, Value x) { return m.div(m.constant(1), x); }},
};
const PowerRule *powerRule(float exponent) {
  for (const PowerRule &rule : kPowerRules)
    if (rule.exponent == exponent)
      return &rule;
  return nullptr;
}

// The rule of a pow whose exponent is a constant of the program.
const PowerRule *powerRule(const FusedProgram &program, const FusedInstruction &instruction) {
  int index = instruction.b - program.inputs;
  if (index < 0 || program.code[index].category != FusedCategory::Constant)
    return nullptr;
  return powerRule(program.code[index].alpha);
}

bool isPow(const FusedInstruction &instruction) {
  return instruction.category == FusedCategory::Binary && BinaryKind(instruction.kind) == BinaryKind::k_pow;
}

bool hasRule(const FusedProgram &program, const FusedInstruction &instruction) {
  switch (instruction.category) {
  case FusedCategory::Unary:
    return instruction.kind < kUnaryRules.size() && kUnaryRules[instruction.kind];
  case FusedCategory::Binary:
    return isPow(instruction) ? powerRule(program, instruction) != nullptr
                              : instruction.kind < kBinaryRules.size() && kBinaryRules[instruction.kind];
  case FusedCategory::Compare:
    return instruction.kind < kCompareRules.size();
  case FusedCategory::Clip:
    return instruction.alpha == instruction.alpha && instruction.beta == instruction.beta;
  case FusedCategory::Select:
  case FusedCategory::Constant:
    return true;
  case FusedCategory::Reduce:
    return program.rowAxes > 0;
  }
  return false;
}

} // namespace

Value emitInstruction(ScalarMath &m, const FusedProgram &program, const FusedInstruction &instruction,
                      llvm::ArrayRef<Value> values) {
  auto operand = [&](int number) { return values[number]; };
  switch (instruction.category) {
  case FusedCategory::Unary:
    return kUnaryRules[instruction.kind](m, operand(instruction.a), instruction.alpha, instruction.beta);
  case FusedCategory::Binary:
    if (isPow(instruction))
      return powerRule(program, instruction)->emit(m, operand(instruction.a));
    return kBinaryRules[instruction.kind](m, operand(instruction.a), operand(instruction.b));
  case FusedCategory::Compare:
    return m.fromBool(m.cmp(kCompareRules[instruction.kind], operand(instruction.a), operand(instruction.b)));
  case FusedCategory::Select:
    return m.select(m.nonZero(operand(instruction.a)), operand(instruction.b), operand(instruction.c));
  case FusedCategory::Clip:
    return m.clamp(operand(instruction.a), instruction.alpha, instruction.beta);
  case FusedCategory::Constant:
  case FusedCategory::Reduce: // made by the passes over a row
    break;
  }
  return m.constant(instruction.alpha);
}

llvm::SmallVector<int> parameterConstants(const FusedProgram &program) {
  int count = int(program.code.size());
  llvm::SmallVector<bool> isExponent(count);
  for (const FusedInstruction &instruction : program.code)
    if (int maker = instruction.b - program.inputs; isPow(instruction) && maker >= 0 && maker < count)
      isExponent[maker] = true;
  llvm::SmallVector<int> indices;
  for (int i = 0; i < count; ++i)
    if (program.code[i].category == FusedCategory::Constant && !isExponent[i])
      indices.push_back(i);
  return indices;
}

llvm::SmallVector<Value> emitProgram(ScalarMath &m, const FusedProgram &program, llvm::ArrayRef<Value> inputs,
                                     llvm::ArrayRef<Value> constants) {
  llvm::SmallVector<Value> values(inputs), results;
  llvm::SmallVector<int> parameters = parameterConstants(program);
  size_t next = 0;
  for (size_t i = 0; i < program.code.size(); ++i) {
    bool isParameter = next < parameters.size() && parameters[next] == int(i);
    values.push_back(isParameter ? constants[next++] : emitInstruction(m, program, program.code[i], values));
  }
  for (int number : program.results)
    results.push_back(values[number]);
  return results;
}

} // namespace codegen

bool canGenerate(const FusedProgram &program) {
  int defined = program.inputs;
  for (const FusedInstruction &instruction : program.code) {
    int used = FusedProgram::operandCount(instruction.category);
    int operands[] = {instruction.a, instruction.b, instruction.c};
    for (int i = 0; i < used; ++i)
      if (operands[i] < 0 || operands[i] >= defined)
        return false;
    if (!codegen::hasRule(program, instruction))
      return false;
    ++defined;
  }
  for (int number : program.results)
    if (number < 0 || number >= defined)
      return false;
  return program.inputs >= 0 && !program.results.empty();
}

} // namespace dspark
