// SIMD f32 arithmetic and the transcendental functions of the elementwise, softmax, norm and RNN kernels,
// written once on clang's vector extensions. The width follows the flags of the including file: 4 lanes at
// the baseline, 8 with AVX2, 16 with AVX-512. Everything has internal linkage, so files of different levels
// never share code.
//
// exp, log, sin, cos, tanh, erf, sigmoid: at most 4 ulp from the true value (vector_math_test sweeps them).
// Algorithms: Cephes (exp, log), N. Juffa's trigonometric reduction, own fits where a function says so. NaN
// in gives NaN out.
#pragma once
#include <cmath>
#include <cstdint>
#ifdef __AVX2__
#include <immintrin.h>
#endif

#define DSPARK_SIMD inline __attribute__((always_inline))

namespace dspark::simd {
namespace {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX2__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif

typedef float vf __attribute__((ext_vector_type(kLanes)));
typedef int32_t vi __attribute__((ext_vector_type(kLanes))); // also masks: -1 true, 0 false
typedef float vfUnaligned __attribute__((ext_vector_type(kLanes), aligned(4)));

DSPARK_SIMD vf load(const float *p) { return *reinterpret_cast<const vfUnaligned *>(p); }
DSPARK_SIMD void store(float *p, vf v) { *reinterpret_cast<vfUnaligned *>(p) = v; }
DSPARK_SIMD vf splat(float v) { return vf(v); }
/// The first n lanes; the others are 0.
DSPARK_SIMD vf loadPart(const float *p, int64_t n) {
  float lanes[kLanes] = {};
  __builtin_memcpy(lanes, p, size_t(n) * sizeof(float));
  return load(lanes);
}
DSPARK_SIMD void storePart(float *p, vf v, int64_t n) {
  float lanes[kLanes];
  store(lanes, v);
  __builtin_memcpy(p, lanes, size_t(n) * sizeof(float));
}

DSPARK_SIMD vi bits(vf v) { return __builtin_bit_cast(vi, v); }
DSPARK_SIMD vf fromBits(vi v) { return __builtin_bit_cast(vf, v); }
DSPARK_SIMD vf select(vi mask, vf a, vf b) { return mask ? a : b; }
DSPARK_SIMD vf abs(vf v) { return fromBits(bits(v) & 0x7fffffff); }
DSPARK_SIMD vf copySign(vf magnitude, vf sign) {
  return fromBits((bits(magnitude) & 0x7fffffff) | (bits(sign) & int32_t(0x80000000)));
}
DSPARK_SIMD vf sqrt(vf v) { return __builtin_elementwise_sqrt(v); }
/// a where a < b or a is NaN: the ONNX minimum, in which NaN wins.
DSPARK_SIMD vf min(vf a, vf b) { return select((a < b) | (a != a), a, b); }
DSPARK_SIMD vf max(vf a, vf b) { return select((a > b) | (a != a), a, b); }
DSPARK_SIMD bool any(vi mask) { return __builtin_reduce_or(mask) != 0; }

/// a*b + c, in one rounding where the machine can.
DSPARK_SIMD vf fma(vf a, vf b, vf c) {
#ifdef __FMA__
  return __builtin_elementwise_fma(a, b, c);
#else
  return a * b + c;
#endif
}

/// To the nearest integer, ties to even.
DSPARK_SIMD vf round(vf v) {
#ifdef __SSE4_1__
  return __builtin_elementwise_roundeven(v);
#else
  // Adding and taking away 2^23 leaves no fraction bits; larger numbers have none.
  vf magnitude = abs(v);
  vf rounded = (magnitude + 0x1p23f) - 0x1p23f;
  return select(magnitude < 0x1p23f, copySign(rounded, v), v);
#endif
}
DSPARK_SIMD vf floor(vf v) {
#ifdef __SSE4_1__
  return __builtin_elementwise_floor(v);
#else
  vf rounded = round(v);
  return copySign(rounded - select(rounded > v, splat(1), splat(0)), v);
#endif
}
DSPARK_SIMD vf ceil(vf v) {
#ifdef __SSE4_1__
  return __builtin_elementwise_ceil(v);
#else
  vf rounded = round(v);
  return copySign(rounded + select(rounded < v, splat(1), splat(0)), v);
#endif
}
/// The integer in each lane, for |v| < 2^22; ties to even.
DSPARK_SIMD vi nearestInt(vf v) { return bits(v + 0x1.8p23f) - 0x4b400000; }
/// 2^k for -126 <= k <= 127.
DSPARK_SIMD vf exp2Int(vi k) { return fromBits((k + 127) << 23); }

/// x = n ln2 + r with a whole number n and |r| <= ln2/2; n + 127 stands in the low bits of `shifted`.
struct ExpParts {
  vf shifted, n, r;
};
constexpr float kExpShift = 0x1.8p23f + 127;
DSPARK_SIMD ExpParts splitExp(vf x) {
  vf shifted = fma(x, splat(1.44269504088896341f), splat(kExpShift)), n = shifted - kExpShift;
  // The first part of ln2 has few bits, so that its product with n is exact without FMA too.
  return {shifted, n, fma(n, splat(2.12194440e-4f), fma(n, splat(-0.693359375f), x))};
}
/// (e^r - 1 - r) / r^2 for |r| <= ln2/2, as a tree: these functions are bound by latency.
DSPARK_SIMD vf expTail(vf r, vf r2) {
  vf low = fma(r, splat(1.6666665459e-1f), splat(5.0000001201e-1f));
  vf high = fma(r, splat(8.3334519073e-3f), splat(4.1665795894e-2f));
  high = fma(r2, fma(r, splat(1.9875691500e-4f), splat(1.3981999507e-3f)), high);
  return fma(high, r2, low);
}

/// Where the result is no normal number: below -104 it is 0, above 89 infinity, and NaN stays.
DSPARK_SIMD vf expAtTheEnds(vf x) {
  vf clamped = select(x < -104.0f, splat(-104.0f), x);
  clamped = select(clamped > 89.0f, splat(89.0f), clamped);
  ExpParts e = splitExp(clamped);
  vf r2 = e.r * e.r, p = fma(expTail(e.r, r2), r2, e.r + 1.0f);
  // 2^n in two factors reaches subnormals and infinity.
  vi n = bits(e.shifted) - bits(splat(kExpShift)), half = n >> 1;
  return p * exp2Int(half) * exp2Int(n - half);
}
DSPARK_SIMD vf exp(vf x) {
  // Nearly all vectors have normal numbers for results, whose exponents are added as integers.
  if (any(!(abs(x) <= 87.0f)))
    return expAtTheEnds(x);
  ExpParts e = splitExp(x);
  vf r2 = e.r * e.r, p = fma(expTail(e.r, r2), r2, e.r + 1.0f);
  return fromBits(bits(p) + (bits(e.shifted) << 23) - (127 << 23));
}
/// The same for x <= 0 with 0 for all results below the normal numbers (x < -87.3): what softmax and the like
/// need, at two thirds of the cost.
DSPARK_SIMD vf expNegative(vf x) {
  ExpParts e = splitExp(select(x < -88.0f, splat(-88.0f), x));
  vf r2 = e.r * e.r, p = fma(expTail(e.r, r2), r2, e.r + 1.0f);
  // At -88 the exponent's bits are 0, and so is the factor.
  return p * fromBits(bits(e.shifted) << 23);
}

DSPARK_SIMD vf log(vf x) {
  // Subnormals are scaled into the normal range.
  vi tiny = x < 0x1p-126f;
  vf scaled = select(tiny, x * 0x1p23f, x);
  // scaled = m * 2^e with m in [sqrt(1/2), sqrt(2))
  vi shifted = bits(scaled) - 0x3f3504f3;
  vi e = shifted >> 23;
  vf m = fromBits((shifted & 0x7fffff) + 0x3f3504f3);
  vf exponent = __builtin_convertvector(e, vf) - select(tiny, splat(23), splat(0));
  vf r = m - 1.0f, r2 = r * r;
  vf p = splat(7.0376836292e-2f);
  p = fma(p, r, splat(-1.1514610310e-1f));
  p = fma(p, r, splat(1.1676998740e-1f));
  p = fma(p, r, splat(-1.2420140846e-1f));
  p = fma(p, r, splat(1.4249322787e-1f));
  p = fma(p, r, splat(-1.6668057665e-1f));
  p = fma(p, r, splat(2.0000714765e-1f));
  p = fma(p, r, splat(-2.4999993993e-1f));
  p = fma(p, r, splat(3.3333331174e-1f));
  vf y = p * r * r2;
  y = fma(exponent, splat(-2.12194440e-4f), y);
  y = fma(r2, splat(-0.5f), y);
  y = fma(exponent, splat(0.693359375f), r + y);
  y = select(x == __builtin_inff(), x, y);
  y = select(x == 0.0f, splat(-__builtin_inff()), y);
  return select((x < 0.0f) | (x != x), splat(__builtin_nanf("")), y);
}

/// log(1 + x) for 0 <= x <= 1, exact also where 1 + x rounds.
DSPARK_SIMD vf log1pUnit(vf x) {
  vf u = x + 1.0f;
  return log(u) + (x - (u - 1.0f)) / u;
}

/// 2^m / (2^m + e^r) with x = m ln2 - r, m whole and |r| <= ln2/2: no branch, and subnormal results have all
/// their bits. Past 20 it is 1, below -104 it is 0.
DSPARK_SIMD vf sigmoid(vf x) {
  vf clamped = select(x < -104.0f, splat(-104.0f), x);
  clamped = select(clamped > 20.0f, splat(20), clamped);
  // 2^(m + 64), as 2^m itself may be subnormal.
  vf shifted = fma(clamped, splat(1.44269504088896341f), splat(kExpShift + 64)),
     m = shifted - (kExpShift + 64);
  vf power = fromBits(bits(shifted) << 23) * 0x1p-64f;
  vf r = fma(m, splat(-2.12194440e-4f), fma(m, splat(0.693359375f), -clamped)), r2 = r * r;
  vf p = fma(expTail(r, r2), r2, r + 1.0f);
  return power / (power + p);
}

/// e^r - 1 for |r| <= ln2/2, good near 0 too.
DSPARK_SIMD vf expm1Rest(vf r) {
  vf r2 = r * r;
  return fma(expTail(r, r2), r2, r);
}

/// t / (t + 2) with t = e^2|x| - 1 = (2^n - 1) + 2^n (e^r - 1), which loses nothing near 0. Past 9.02 it
/// is 1.
DSPARK_SIMD vf tanh(vf x) {
  vf a = abs(x);
  a = select(a > 9.02f, splat(9.02f), a);
  ExpParts e = splitExp(a + a);
  vf power = fromBits(bits(e.shifted) << 23);
  vf t = fma(power, expm1Rest(e.r), power - 1.0f);
  return copySign(t / (t + 2.0f), x);
}

/// 1 - e^-(t g(t)) with g a polynomial of t = |x|, fitted for least relative error of the result (3.6e-8)
/// over t <= 4, past which erf is 1 in f32; e^-(t g) - 1 is taken apart as in tanh.
DSPARK_SIMD vf erf(vf x) {
  vf t = abs(x);
  t = select(t > 4.0f, splat(4), t);
  vf t2 = t * t;
  vf low = fma(splat(6.366165280e-1f), t, splat(1.128379226f));
  low = fma(fma(splat(-1.932166703e-2f), t, splat(1.028143913e-1f)), t2, low);
  vf high = fma(splat(1.251792884e-3f), t, splat(2.056498779e-4f));
  high = fma(fma(splat(4.071003423e-5f), t, splat(-3.810165217e-4f)), t2, high);
  ExpParts e = splitExp(-t * fma(high, t2 * t2, low));
  vf power = fromBits(bits(e.shifted) << 23);
  return copySign(fma(-power, expm1Rest(e.r), 1.0f - power), x);
}

/// x P(X <= x) for a normal X, as max(x, 0) - t P(X > t) with t = |x|, which does not cancel. The tail is
/// exp(-t^2/2) times a rational function, fitted for least relative error (6e-8) over t <= 6; past 6 the
/// product is below 6e-9 and stays there. Absolute error at most 1e-7 for x < 0, 4 ulp for x > 0. NaN at
/// minus infinity, as the formula gives it: 0 times infinity.
DSPARK_SIMD vf gelu(vf x) {
  vf t = abs(x);
  t = select(t > 6.0f, splat(6), t);
  // exp(-t^2/2) = 2^k 2^r with -38 <= k: k is in the low bits of `shifted`.
  vf scaled = t * -0.72134752044448170f;
  vf shifted = fma(scaled, t, splat(0x1.8p23f));
  vf r = fma(scaled, t, 0x1.8p23f - shifted);
  vf e = splat(1.32186722e-3f);
  e = fma(e, r, splat(9.67169832e-3f));
  e = fma(e, r, splat(5.55089302e-2f));
  e = fma(e, r, splat(2.40222380e-1f));
  e = fma(e, r, splat(6.93146884e-1f));
  e = fma(e, r, splat(1));
  e = fromBits(bits(e) + (bits(shifted) << 23));
  vf p = splat(1.36324652e-2f);
  p = fma(p, t, splat(1.04481056e-1f));
  p = fma(p, t, splat(3.34600329e-1f));
  p = fma(p, t, splat(4.99999970e-1f));
  vf q = splat(3.41921076e-2f);
  q = fma(q, t, splat(2.61342615e-1f));
  q = fma(q, t, splat(8.79558206e-1f));
  q = fma(q, t, splat(1.46708155f));
  q = fma(q, t, splat(1));
  return select(x > 0.0f, x, x * 0.0f) - t * e * p / q;
}
/// x/2 (1 + tanh u) is x sigmoid(2u), which does not cancel for negative x.
DSPARK_SIMD vf geluTanh(vf x) {
  vf u = x * fma(x * x, splat(0.044715f * 0.79788456080286536f), splat(0.79788456080286536f));
  return x * sigmoid(u * 2.0f);
}
DSPARK_SIMD vf softplus(vf x) {
  vf positive = select(x < 0.0f, splat(0), x);
  return positive + log1pUnit(exp(-abs(x)));
}
/// x tanh(log(1 + e^x)) = x n / (n + 2) with n = e^x (e^x + 2).
DSPARK_SIMD vf mish(vf x) {
  vf e = exp(select(x > 20.0f, splat(20), x));
  vf n = fma(e, e, e + e); // one rounding less than e (e + 2)
  return x * (n / (n + 2.0f));
}

/// Past this magnitude the reduction below loses digits, and lanes are computed one by one.
#ifdef __FMA__
constexpr float kTrigLimit = 71476.0f;
#else
constexpr float kTrigLimit = 4000.0f;
#endif

/// sin(x + quadrant * pi/2)
DSPARK_SIMD vf sinQuadrant(vf x, int quadrant) {
  vf shifted = x * 0.636619772f + 0x1.8p23f;
  vi k = bits(shifted) - 0x4b400000 + quadrant;
  vf n = shifted - 0x1.8p23f;
#ifdef __FMA__
  vf r = fma(n, splat(-1.57079601e+00f), x);
  r = fma(n, splat(-3.13916473e-07f), r);
  r = fma(n, splat(-5.39030253e-15f), r);
#else
  // The parts of pi/2 have few bits, so that products with n are exact.
  vf r = x - n * 1.5703125f;
  r = r - n * 4.837512969970703125e-4f;
  r = r - n * 7.549789948768648e-8f;
#endif
  vf z = r * r;
  vf s = splat(2.86567956e-6f);
  s = fma(s, z, splat(-1.98559923e-4f));
  s = fma(s, z, splat(8.33338592e-3f));
  s = fma(s, z, splat(-1.66666672e-1f));
  s = fma(s, z * r, r);
  vf c = splat(2.44677067e-5f);
  c = fma(c, z, splat(-1.38877297e-3f));
  c = fma(c, z, splat(4.16666567e-2f));
  c = fma(c, z, splat(-5.00000000e-1f));
  c = fma(c, z, splat(1));
  vf y = select((k & 1) != 0, c, s);
  return fromBits(bits(y) ^ ((k & 2) << 30));
}
DSPARK_SIMD vf sin(vf x) {
  vf y = sinQuadrant(x, 0);
  if (any(abs(x) > kTrigLimit))
    for (int i = 0; i < kLanes; ++i)
      y[i] = float(::sin(double(x[i])));
  return y;
}
DSPARK_SIMD vf cos(vf x) {
  vf y = sinQuadrant(x, 1);
  if (any(abs(x) > kTrigLimit))
    for (int i = 0; i < kLanes; ++i)
      y[i] = float(::cos(double(x[i])));
  return y;
}

} // namespace
} // namespace dspark::simd
