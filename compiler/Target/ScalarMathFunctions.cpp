// Transcendentals. Coefficients and reductions are those of Cephes (S. Moshier) unless a function says
// otherwise. The functions that kernels/common/vector_math.h has too are computed by the same steps, so that
// generated and catalogue kernels of one level give the same bits. FusedAccuracy in test/compiler/Target
// measures each one.
#include "compiler/Target/ScalarMath.h"
#include <limits>

namespace dspark::codegen {
using mlir::Value;

namespace {
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kLn2 = 0.693147180559945309f;
// ln2 in two parts; the first has few bits, so that its product with an exponent is exact without FMA as
// well.
constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
constexpr float kPi = 3.14159265358979323846f, kHalfPi = 1.57079632679489661923f;
} // namespace

// Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits of the sum; 127 more is what
// vector_math.h adds there.
ScalarMath::Reduced ScalarMath::reduceByLn2(Value x) {
  constexpr float kShift = 12582912.0f + 127;
  Value shifted = fma(x, constant(1.44269504088896341f), constant(kShift));
  Value n = sub(shifted, constant(kShift));
  Value r = fma(n, constant(-kLn2High), x);
  r = fma(n, constant(-kLn2Low), r);
  return {subInt(bits(shifted), bits(constant(kShift))), r};
}

// (e^r - 1 - r) / r^2, a tree as in vector_math.h.
Value ScalarMath::expTail(Value r, Value r2) {
  Value low = fma(r, constant(1.6666665459e-1f), constant(5.0000001201e-1f));
  Value high = fma(r, constant(8.3334519073e-3f), constant(4.1665795894e-2f));
  high = fma(r2, fma(r, constant(1.9875691500e-4f), constant(1.3981999507e-3f)), high);
  return fma(high, r2, low);
}

// The power of two is applied in two steps, so that results down to denormals and up to infinity come out
// right.
Value ScalarMath::exp(Value x, int shift) {
  auto [n, r] = reduceByLn2(clamp(x, -105.0f, 90.0f));
  Value r2 = mul(r, r), p = fma(expTail(r, r2), r2, add(r, constant(1)));
  if (shift)
    n = addInt(n, intConstant(shift));
  Value half = shiftRight(n, 1);
  return mul(mul(p, powerOfTwo(half)), powerOfTwo(subInt(n, half)));
}

// e^r - 1 for |r| <= ln2/2, good near 0 too.
Value ScalarMath::expm1Rest(Value r) {
  Value r2 = mul(r, r);
  return fma(expTail(r, r2), r2, r);
}

Value ScalarMath::expm1(Value x) {
  auto [n, r] = reduceByLn2(clamp(x, -30.0f, 88.0f));
  Value p = polynomial(r, {1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f,
                           1.6666665459e-1f, 5.0000001201e-1f});
  p = fma(p, mul(r, r), r);
  Value scale = powerOfTwo(n);
  return fma(p, scale, sub(scale, constant(1)));
}

Value ScalarMath::log(Value x) {
  // Denormals are scaled by 2^23 first.
  Value isTiny = cmp(Cmp::OLT, x, constant(std::numeric_limits<float>::min()));
  Value i = bits(select(isTiny, mul(x, constant(8388608.0f)), x));
  // x = m 2^e with m in [sqrt(1/2), sqrt(2))
  Value exponent = shiftRight(subInt(i, intConstant(0x3f3504f3)), 23);
  Value f = sub(fromBits(subInt(i, shiftLeft(exponent, 23))), constant(1));
  Value e = mlir::arith::SIToFPOp::create(b, loc, b.getF32Type(), exponent);
  e = sub(e, select(isTiny, constant(23), constant(0)));
  Value square = mul(f, f);
  Value y = polynomial(f, {7.0376836292e-2f, -1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f,
                           1.4249322787e-1f, -1.6668057665e-1f, 2.0000714765e-1f, -2.4999993993e-1f,
                           3.3333331174e-1f});
  y = mul(mul(y, f), square);
  y = fma(e, constant(kLn2Low), y);
  y = fma(square, constant(-0.5f), y);
  Value result = fma(e, constant(kLn2High), add(f, y));
  result = select(cmp(Cmp::OLT, x, constant(kInf)), result, x); // infinity and NaN
  result = select(cmp(Cmp::OEQ, x, constant(0)), constant(-kInf), result);
  return select(cmp(Cmp::OLT, x, constant(0)), constant(kNan), result);
}

// log(u) + what rounding u = 1 + x lost, relative to u.
Value ScalarMath::log1p(Value x) {
  Value u = add(x, constant(1));
  Value lost = div(sub(x, sub(u, constant(1))), u);
  Value ordinary = both(cmp(Cmp::OGT, u, constant(0)), cmp(Cmp::OLT, u, constant(kInf)));
  return add(log(u), select(ordinary, lost, constant(0)));
}

// 2^m / (2^m + e^r) with x = m ln2 - r, as vector_math.h has it; 2^m, which may be subnormal, is made 2^64
// times too large first.
Value ScalarMath::sigmoid(Value x) {
  constexpr float kShift = 12582912.0f + 127 + 64;
  Value clamped = clamp(x, -104.0f, 20.0f);
  Value shifted = fma(clamped, constant(1.44269504088896341f), constant(kShift));
  Value m = sub(shifted, constant(kShift));
  Value power = mul(fromBits(shiftLeft(bits(shifted), 23)), constant(0x1p-64f));
  Value r = fma(m, constant(kLn2Low), fma(m, constant(kLn2High), neg(clamped))), r2 = mul(r, r);
  Value p = fma(expTail(r, r2), r2, add(r, constant(1)));
  return div(power, add(power, p));
}

// t / (t + 2) with t = e^2|x| - 1 = (2^n - 1) + 2^n (e^r - 1); past 9.02 it is 1.
Value ScalarMath::tanh(Value x) {
  Value size = abs(x);
  size = select(cmp(Cmp::OGT, size, constant(9.02f)), constant(9.02f), size);
  auto [n, r] = reduceByLn2(add(size, size));
  Value power = powerOfTwo(n), t = fma(power, expm1Rest(r), sub(power, constant(1)));
  return copySign(div(t, add(t, constant(2))), x);
}

// max(x, 0) - t P(X > t) with t = |x| up to 6, as vector_math.h has it: the tail is exp(-t^2/2) times a
// rational function.
Value ScalarMath::gelu(Value x) {
  constexpr float kMagic = 12582912.0f;
  Value t = abs(x);
  t = select(cmp(Cmp::OGT, t, constant(6)), constant(6), t);
  Value scaled = mul(t, constant(-0.72134752044448170f));
  Value shifted = fma(scaled, t, constant(kMagic));
  Value r = fma(scaled, t, sub(constant(kMagic), shifted));
  Value e =
      polynomial(r, {1.32186722e-3f, 9.67169832e-3f, 5.55089302e-2f, 2.40222380e-1f, 6.93146884e-1f, 1});
  e = fromBits(addInt(bits(e), shiftLeft(bits(shifted), 23)));
  Value p = polynomial(t, {1.36324652e-2f, 1.04481056e-1f, 3.34600329e-1f, 4.99999970e-1f});
  Value q = polynomial(t, {3.41921076e-2f, 2.61342615e-1f, 8.79558206e-1f, 1.46708155f, 1});
  return sub(select(cmp(Cmp::OGT, x, constant(0)), x, mul(x, constant(0))), div(mul(mul(t, e), p), q));
}

// x/2 (1 + tanh u) = x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3); the second form does not cancel below
// 0.
Value ScalarMath::geluTanh(Value x) {
  constexpr float kScale = 0.79788456080286536f;
  Value u = mul(x, fma(mul(x, x), constant(0.044715f * kScale), constant(kScale)));
  return mul(x, sigmoid(add(u, u)));
}

// 1 - e^-(t g(t)) with t = |x| up to 4 and the polynomial g of vector_math.h.
Value ScalarMath::erf(Value x) {
  Value t = abs(x);
  t = select(cmp(Cmp::OGT, t, constant(4)), constant(4), t);
  Value t2 = mul(t, t);
  Value low = fma(constant(6.366165280e-1f), t, constant(1.128379226f));
  low = fma(fma(constant(-1.932166703e-2f), t, constant(1.028143913e-1f)), t2, low);
  Value high = fma(constant(1.251792884e-3f), t, constant(2.056498779e-4f));
  high = fma(fma(constant(4.071003423e-5f), t, constant(-3.810165217e-4f)), t2, high);
  auto [n, r] = reduceByLn2(mul(neg(t), fma(high, mul(t2, t2), low)));
  Value power = powerOfTwo(n);
  return copySign(fma(neg(power), expm1Rest(r), sub(constant(1), power)), x);
}

Value ScalarMath::softplus(Value x) {
  Value positive = select(cmp(Cmp::OLT, x, constant(0)), constant(0), x);
  return add(positive, log1p(exp(neg(abs(x)))));
}

// x tanh(log(1 + e^x)) = x n / (n + 2), n = e^x (e^x + 2); from 20 on it is x.
Value ScalarMath::mish(Value x) {
  Value e = exp(select(cmp(Cmp::OGT, x, constant(20)), constant(20), x));
  Value n = fma(e, e, add(e, e));
  return mul(x, div(n, add(n, constant(2))));
}

// With E = e^|x| / 2: cosh = E + 1/(4E), sinh = E - 1/(4E) away from 0. The half comes from the exponent, so
// neither overflows early.
Value ScalarMath::cosh(Value x) {
  Value e = exp(abs(x), -1);
  return add(e, div(constant(0.25f), e));
}
Value ScalarMath::sinh(Value x) {
  Value size = abs(x), square = mul(x, x), e = exp(size, -1);
  Value far = copySign(sub(e, div(constant(0.25f), e)), x);
  Value near = polynomial(square, {2.03721912945e-4f, 8.33028376239e-3f, 1.66667160211e-1f});
  return select(cmp(Cmp::OGT, size, constant(1)), far, fma(mul(near, square), x, x));
}

Value ScalarMath::asinh(Value x) {
  Value size = abs(x), square = mul(x, x);
  Value root = add(constant(1), sqrt(add(constant(1), square)));
  Value near = log1p(add(size, div(square, root)));
  // The square overflows at 1.8e19; from 1e9 on asinh is log(2|x|) in f32.
  Value far = add(log(size), constant(kLn2));
  return copySign(select(cmp(Cmp::OGT, size, constant(1e9f)), far, near), x);
}
Value ScalarMath::acosh(Value x) {
  Value t = sub(x, constant(1));
  Value near = log1p(add(t, sqrt(fma(t, t, add(t, t)))));
  Value far = add(log(x), constant(kLn2));
  Value result = select(cmp(Cmp::OGT, x, constant(1e9f)), far, near);
  return select(cmp(Cmp::OLT, x, constant(1)), constant(kNan), result);
}
Value ScalarMath::atanh(Value x) {
  Value size = abs(x);
  Value ratio = div(add(size, size), sub(constant(1), size));
  return copySign(mul(constant(0.5f), log1p(ratio)), x);
}

// asin(a) for a <= 1/2; asin(sqrt((1-a)/2)) above, which is (pi/2 - asin(a)) / 2. NaN above 1.
Value ScalarMath::asinKernel(Value a, Value &isBig) {
  isBig = cmp(Cmp::OGT, a, constant(0.5f));
  Value folded = mul(constant(0.5f), sub(constant(1), a));
  Value z = select(isBig, folded, mul(a, a));
  Value s = select(isBig, sqrt(folded), a);
  Value p = polynomial(
      z, {4.2163199048e-2f, 2.4181311049e-2f, 4.5470025998e-2f, 7.4953002686e-2f, 1.6666752422e-1f});
  return fma(mul(p, z), s, s);
}
Value ScalarMath::asin(Value x) {
  Value isBig, p = asinKernel(abs(x), isBig);
  return copySign(select(isBig, sub(constant(kHalfPi), add(p, p)), p), x);
}
Value ScalarMath::acos(Value x) {
  Value isBig, p = asinKernel(abs(x), isBig), twice = add(p, p);
  Value big = select(cmp(Cmp::OLT, x, constant(0)), sub(constant(kPi), twice), twice);
  return select(isBig, big, sub(constant(kHalfPi), copySign(p, x)));
}

// Reduced at tan(pi/8) and tan(3 pi/8).
Value ScalarMath::atan(Value x) {
  Value a = abs(x), one = constant(1);
  Value isFar = cmp(Cmp::OGT, a, constant(2.414213562373095f));
  Value isMiddle = cmp(Cmp::OGT, a, constant(0.4142135623730950f));
  Value t = select(isMiddle, div(sub(a, one), add(a, one)), a);
  t = select(isFar, div(constant(-1), a), t);
  Value base = select(isMiddle, constant(kHalfPi / 2), constant(0));
  base = select(isFar, constant(kHalfPi), base);
  Value z = mul(t, t);
  Value p = polynomial(z, {8.05374449538e-2f, -1.38776856032e-1f, 1.99777106478e-1f, -3.33329491539e-1f});
  return copySign(add(base, fma(mul(p, z), t, t)), x);
}

} // namespace dspark::codegen
