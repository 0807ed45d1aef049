// Arithmetic helpers and the rounding functions; the transcendentals are in ScalarMathFunctions.cpp.
#include "compiler/Target/ScalarMath.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <limits>

namespace dspark::codegen {
using namespace mlir;

Value ScalarMath::constant(float value) {
  return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value));
}
Value ScalarMath::intConstant(int32_t value) {
  return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(value));
}
Value ScalarMath::add(Value x, Value y) { return arith::AddFOp::create(b, loc, x, y); }
Value ScalarMath::sub(Value x, Value y) { return arith::SubFOp::create(b, loc, x, y); }
Value ScalarMath::mul(Value x, Value y) { return arith::MulFOp::create(b, loc, x, y); }
Value ScalarMath::div(Value x, Value y) { return arith::DivFOp::create(b, loc, x, y); }
Value ScalarMath::fma(Value x, Value y, Value z) {
  if (level == Isa::Baseline)
    return add(mul(x, y), z); // llvm.fma would become a call of fmaf
  return math::FmaOp::create(b, loc, x, y, z);
}
Value ScalarMath::neg(Value x) { return arith::NegFOp::create(b, loc, x); }
Value ScalarMath::abs(Value x) { return math::AbsFOp::create(b, loc, x); }
Value ScalarMath::sqrt(Value x) { return math::SqrtOp::create(b, loc, x); }
Value ScalarMath::copySign(Value magnitude, Value sign) {
  return math::CopySignOp::create(b, loc, magnitude, sign);
}
Value ScalarMath::cmp(Cmp predicate, Value x, Value y) {
  return arith::CmpFOp::create(b, loc, predicate, x, y);
}
Value ScalarMath::select(Value condition, Value x, Value y) {
  return arith::SelectOp::create(b, loc, condition, x, y);
}
Value ScalarMath::nonZero(Value x) { return cmp(Cmp::UNE, x, constant(0)); }
Value ScalarMath::fromBool(Value condition) { return select(condition, constant(1), constant(0)); }
Value ScalarMath::either(Value x, Value y) { return arith::OrIOp::create(b, loc, x, y); }
Value ScalarMath::both(Value x, Value y) { return arith::AndIOp::create(b, loc, x, y); }
Value ScalarMath::differ(Value x, Value y) { return arith::XOrIOp::create(b, loc, x, y); }

// As the two operands of an ordered maxps, plus one blend for NaN in x; y's NaN falls through.
Value ScalarMath::max(Value x, Value y) {
  return select(either(cmp(Cmp::OGT, x, y), cmp(Cmp::UNO, x, x)), x, y);
}
Value ScalarMath::min(Value x, Value y) {
  return select(either(cmp(Cmp::OLT, x, y), cmp(Cmp::UNO, x, x)), x, y);
}
Value ScalarMath::clamp(Value x, float lo, float hi) {
  Value low = constant(lo), high = constant(hi);
  Value raised = select(cmp(Cmp::OGT, low, x), low, x);
  return select(cmp(Cmp::OLT, high, raised), high, raised);
}

Value ScalarMath::bits(Value x) { return arith::BitcastOp::create(b, loc, b.getI32Type(), x); }
Value ScalarMath::fromBits(Value i) { return arith::BitcastOp::create(b, loc, b.getF32Type(), i); }
Value ScalarMath::addInt(Value i, Value j) { return arith::AddIOp::create(b, loc, i, j); }
Value ScalarMath::subInt(Value i, Value j) { return arith::SubIOp::create(b, loc, i, j); }
Value ScalarMath::shiftLeft(Value i, int by) { return arith::ShLIOp::create(b, loc, i, intConstant(by)); }
Value ScalarMath::shiftRight(Value i, int by) { return arith::ShRSIOp::create(b, loc, i, intConstant(by)); }
Value ScalarMath::powerOfTwo(Value n) { return fromBits(shiftLeft(addInt(n, intConstant(127)), 23)); }

Value ScalarMath::polynomial(Value x, std::initializer_list<float> coefficients) {
  const float *c = coefficients.begin();
  Value sum = constant(*c++);
  while (c != coefficients.end())
    sum = fma(sum, x, constant(*c++));
  return sum;
}

// Without roundps, LLVM would call libm. Adding and subtracting 2^23 rounds to an integer in the current
// mode; numbers of that size and up have no fraction, and NaN compares false.
Value ScalarMath::round(Value x) {
  if (level != Isa::Baseline)
    return math::RoundEvenOp::create(b, loc, x);
  Value big = constant(8388608.0f), size = abs(x);
  Value rounded = copySign(sub(add(size, big), big), x);
  return select(cmp(Cmp::OLT, size, big), rounded, x);
}
Value ScalarMath::floor(Value x) {
  if (level != Isa::Baseline)
    return math::FloorOp::create(b, loc, x);
  Value nearest = round(x);
  Value lowered = select(cmp(Cmp::OGT, nearest, x), sub(nearest, constant(1)), nearest);
  return copySign(lowered, x);
}
Value ScalarMath::ceil(Value x) {
  if (level != Isa::Baseline)
    return math::CeilOp::create(b, loc, x);
  return neg(floor(neg(x)));
}

} // namespace dspark::codegen
