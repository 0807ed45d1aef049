#include "kernels/fused/interpreter.h"

namespace dspark {

const float *FusedBlocks::spread(const FusedValue &value, int64_t n, size_t k) {
  if (!value.isScalar)
    return value.data;
  float *copy = buffer(inputBuffer(call.in.size()) + k);
  std::fill_n(copy, n, *value.data);
  return copy;
}

FusedValue FusedBlocks::run(size_t i, int64_t n, float *y) {
  const int64_t *words = &program[i * kFusedStride];
  auto category = FusedCategory(words[0]);
  auto kind = size_t(words[1]);
  float alpha = float(params[2 * i]), beta = float(params[2 * i + 1]);
  int operands = FusedProgram::operandCount(category);
  const FusedValue a = operands > 0 ? values[words[2]] : FusedValue{},
                   b = operands > 1 ? values[words[3]] : FusedValue{};
  switch (category) {
  case FusedCategory::Unary:
    table.unary[kind](a.data, y, a.isScalar ? 1 : n, alpha, beta);
    return {y, a.isScalar};
  case FusedCategory::Clip:
    table.clip(a.data, y, a.isScalar ? 1 : n, alpha, beta);
    return {y, a.isScalar};
  case FusedCategory::Binary:
    return runPair(table.binary[kind], a, b, y, n);
  case FusedCategory::Compare:
    return runPair(table.compareAsFloat[kind], a, b, y, n);
  case FusedCategory::Select: {
    const FusedValue c = values[words[4]];
    bool isScalar = a.isScalar && b.isScalar && c.isScalar;
    n = isScalar ? 1 : n;
    table.select(spread(a, n, 0), spread(b, n, 1), spread(c, n, 2), y, n);
    return {y, isScalar};
  }
  case FusedCategory::Constant:
  case FusedCategory::Reduce: // made by the passes over a row
    break;
  }
  *y = alpha;
  return {y, true};
}

FusedValue FusedBlocks::runPair(const BinaryLoop *forms, const FusedValue &a, const FusedValue &b, float *y,
                                int64_t n) {
  bool both = a.isScalar && b.isScalar;
  OperandForm form = both ? kBothBlocks : a.isScalar ? kScalarA : b.isScalar ? kScalarB : kBothBlocks;
  forms[form](a.data, b.data, y, both ? 1 : n);
  return {y, both};
}

} // namespace dspark
