// The loops of float_loops.h for the including file's ISA level. Include once per level, after defining
// DSPARK_FLOAT_LOOPS as the name of the table.
#include "kernels/common/numeric.h"
#include "kernels/common/vector_math.h"
#include "kernels/elementwise/float_loops.h"

namespace dspark {
namespace {

using namespace simd;

DSPARK_SIMD vf asFloat(vi mask) { return select(mask, splat(1), splat(0)); }
DSPARK_SIMD vf ordered(vf x, vf y) { return select(x != x, x, y); } // x if it is NaN
template <typename F> DSPARK_SIMD vf lanewise(vf x, F f) {
  for (int i = 0; i < kLanes; ++i)
    x[i] = f(x[i]);
  return x;
}

struct Params {
  float alpha, beta;
};

// --- unary: one struct per kind, named after it

#define DSPARK_DEFINE_UNARY(name, ...)                                                                       \
  struct Unary_##name {                                                                                      \
    static DSPARK_SIMD vf apply(vf x, Params p) { return __VA_ARGS__; }                                      \
  };

/// e^x - 1 without cancellation near 0: Kahan's correction by log.
DSPARK_SIMD vf expm1(vf x) {
  vf u = exp(x);
  vf corrected = (u - 1.0f) * x / log(u);
  return select(u == 1.0f, x, select((u - 1.0f == -1.0f) | (abs(x) > 1.0f), u - 1.0f, corrected));
}
DSPARK_SIMD vf hardSigmoid(vf x, Params p) {
  vf y = x * p.alpha + p.beta;
  y = select(y < 0.0f, splat(0), y);
  return select(y > 1.0f, splat(1), y);
}
DSPARK_SIMD vf shrink(vf x, Params p) {
  vf y = select(x > p.alpha, x - p.beta, splat(0));
  return select(x < -p.alpha, x + p.beta, y);
}
DSPARK_SIMD vf sign(vf x) {
  return ordered(x, select(x > 0.0f, splat(1), select(x < 0.0f, splat(-1), splat(0))));
}

DSPARK_DEFINE_UNARY(abs, abs(x))
DSPARK_DEFINE_UNARY(neg, -x)
DSPARK_DEFINE_UNARY(exp, exp(x))
DSPARK_DEFINE_UNARY(log, log(x))
DSPARK_DEFINE_UNARY(sqrt, sqrt(x))
DSPARK_DEFINE_UNARY(rsqrt, 1.0f / sqrt(x))
DSPARK_DEFINE_UNARY(reciprocal, 1.0f / x)
DSPARK_DEFINE_UNARY(floor, floor(x))
DSPARK_DEFINE_UNARY(ceil, ceil(x))
DSPARK_DEFINE_UNARY(round, round(x))
DSPARK_DEFINE_UNARY(sign, sign(x))
DSPARK_DEFINE_UNARY(relu, select(x < 0.0f, splat(0), x))
DSPARK_DEFINE_UNARY(leaky_relu, select(x < 0.0f, x *p.alpha, x))
DSPARK_DEFINE_UNARY(elu, select(x > 0.0f, x, expm1(x) * p.alpha))
DSPARK_DEFINE_UNARY(selu, select(x > 0.0f, x, expm1(x) * p.alpha) * p.beta)
DSPARK_DEFINE_UNARY(celu, select(x > 0.0f, x, expm1(x / p.alpha) * p.alpha))
DSPARK_DEFINE_UNARY(thresholded_relu, select(x > p.alpha, x, splat(0)))
DSPARK_DEFINE_UNARY(hard_sigmoid, hardSigmoid(x, p))
DSPARK_DEFINE_UNARY(hard_swish, x *hardSigmoid(x, p))
DSPARK_DEFINE_UNARY(sigmoid, sigmoid(x))
DSPARK_DEFINE_UNARY(silu, x *sigmoid(x))
DSPARK_DEFINE_UNARY(tanh, tanh(x))
DSPARK_DEFINE_UNARY(erf, erf(x))
DSPARK_DEFINE_UNARY(gelu, gelu(x))
DSPARK_DEFINE_UNARY(gelu_tanh, geluTanh(x))
DSPARK_DEFINE_UNARY(softplus, softplus(x))
DSPARK_DEFINE_UNARY(softsign, x / (abs(x) + 1.0f))
DSPARK_DEFINE_UNARY(mish, mish(x))
DSPARK_DEFINE_UNARY(swish, x *sigmoid(x *p.alpha))
DSPARK_DEFINE_UNARY(shrink, shrink(x, p))
DSPARK_DEFINE_UNARY(sin, sin(x))
DSPARK_DEFINE_UNARY(cos, cos(x))
// Rare functions go through libm, lane by lane.
DSPARK_DEFINE_UNARY(tan, lanewise(x, [](float v) { return float(::tan(double(v))); }))
DSPARK_DEFINE_UNARY(asin, lanewise(x, [](float v) { return float(::asin(double(v))); }))
DSPARK_DEFINE_UNARY(acos, lanewise(x, [](float v) { return float(::acos(double(v))); }))
DSPARK_DEFINE_UNARY(atan, lanewise(x, [](float v) { return float(::atan(double(v))); }))
DSPARK_DEFINE_UNARY(sinh, lanewise(x, [](float v) { return float(::sinh(double(v))); }))
DSPARK_DEFINE_UNARY(cosh, lanewise(x, [](float v) { return float(::cosh(double(v))); }))
DSPARK_DEFINE_UNARY(asinh, lanewise(x, [](float v) { return float(::asinh(double(v))); }))
DSPARK_DEFINE_UNARY(acosh, lanewise(x, [](float v) { return float(::acosh(double(v))); }))
DSPARK_DEFINE_UNARY(atanh, lanewise(x, [](float v) { return float(::atanh(double(v))); }))
DSPARK_DEFINE_UNARY(not, asFloat(x == 0.0f))
DSPARK_DEFINE_UNARY(isnan, asFloat(x != x))
// alpha: detect negative; beta: detect positive
DSPARK_DEFINE_UNARY(isinf, asFloat(x == (p.beta != 0 ? __builtin_inff() : __builtin_nanf(""))) +
                               asFloat(x == (p.alpha != 0 ? -__builtin_inff() : __builtin_nanf(""))))
struct Unary_bitnot; // integers only

template <typename F> void unaryLoop(const float *x, float *y, int64_t n, float alpha, float beta) {
  Params p{alpha, beta};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    store(y + i, F::apply(load(x + i), p));
  if (i < n)
    storePart(y + i, F::apply(loadPart(x + i, n - i), p), n - i);
}
template <typename F> constexpr UnaryLoop unaryOf() {
  if constexpr (requires { sizeof(F); })
    return unaryLoop<F>;
  else
    return nullptr;
}

// --- binary

#define DSPARK_DEFINE_BINARY(name, ...)                                                                      \
  struct Binary_##name {                                                                                     \
    static DSPARK_SIMD vf apply(vf a, vf b) { return __VA_ARGS__; }                                          \
  };

template <typename F> DSPARK_SIMD vf lanewise(vf a, vf b, F f) {
  for (int i = 0; i < kLanes; ++i)
    a[i] = f(a[i], b[i]);
  return a;
}
/// Exponents that models use most avoid libm when the whole vector agrees.
DSPARK_SIMD vf pow(vf a, vf b) {
  if (!any(b != 2.0f))
    return a * a;
  if (!any(b != 0.5f)) // pow(-0, 0.5) is +0 and pow(-inf, 0.5) is +inf, unlike sqrt
    return select(a == -__builtin_inff(), splat(__builtin_inff()), sqrt(a) + 0.0f);
  if (!any(b != 3.0f))
    return a * a * a;
  return lanewise(a, b, [](float x, float y) { return float(::pow(double(x), double(y))); });
}
/// fmod, moved into the divisor's sign; a zero takes that sign too.
DSPARK_SIMD float floorMod(float a, float b) {
  double r = ::fmod(double(a), double(b));
  if (r == 0)
    return __builtin_copysignf(0, b);
  return float((r < 0) != (b < 0) ? r + b : r);
}

DSPARK_DEFINE_BINARY(add, a + b)
DSPARK_DEFINE_BINARY(sub, a - b)
DSPARK_DEFINE_BINARY(mul, a *b)
DSPARK_DEFINE_BINARY(div, a / b)
DSPARK_DEFINE_BINARY(pow, pow(a, b))
DSPARK_DEFINE_BINARY(min, min(a, b))
DSPARK_DEFINE_BINARY(max, max(a, b))
DSPARK_DEFINE_BINARY(mod, lanewise(a, b, floorMod))
DSPARK_DEFINE_BINARY(fmod,
                     lanewise(a, b, [](float x, float y) { return float(::fmod(double(x), double(y))); }))
DSPARK_DEFINE_BINARY(and, asFloat((a != 0.0f) & (b != 0.0f)))
DSPARK_DEFINE_BINARY(or, asFloat((a != 0.0f) | (b != 0.0f)))
DSPARK_DEFINE_BINARY(xor, asFloat((a != 0.0f) ^ (b != 0.0f)))
DSPARK_DEFINE_BINARY(prelu, select(a < 0.0f, a *b, a))
struct Binary_bitand; // integers only
struct Binary_bitor;
struct Binary_bitxor;
struct Binary_shl;
struct Binary_shr;

/// Calls body(a, b, at, lanes) for every vector of the block.
template <OperandForm form, typename F>
DSPARK_SIMD void forPairs(const float *a, const float *b, int64_t n, F body) {
  vf fixed = form == kScalarA ? splat(*a) : form == kScalarB ? splat(*b) : splat(0);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    body(form == kScalarA ? fixed : load(a + i), form == kScalarB ? fixed : load(b + i), i, int64_t(kLanes));
  if (i < n)
    body(form == kScalarA ? fixed : loadPart(a + i, n - i), form == kScalarB ? fixed : loadPart(b + i, n - i),
         i, n - i);
}
DSPARK_SIMD void storeLanes(float *y, vf v, int64_t lanes) {
  if (lanes == kLanes)
    store(y, v);
  else
    storePart(y, v, lanes);
}

template <typename F, OperandForm form> void binaryLoop(const float *a, const float *b, float *y, int64_t n) {
  forPairs<form>(a, b, n, [=](vf x, vf z, int64_t at, int64_t lanes) __attribute__((always_inline)) {
    storeLanes(y + at, F::apply(x, z), lanes);
  });
}
template <typename F, OperandForm form> constexpr BinaryLoop binaryOf() {
  if constexpr (requires { sizeof(F); })
    return binaryLoop<F, form>;
  else
    return nullptr;
}

// --- compare

#define DSPARK_DEFINE_COMPARE(name, op)                                                                      \
  struct Compare_##name {                                                                                    \
    static DSPARK_SIMD vi apply(vf a, vf b) { return a op b; }                                               \
  };
DSPARK_DEFINE_COMPARE(eq, ==)
DSPARK_DEFINE_COMPARE(lt, <)
DSPARK_DEFINE_COMPARE(le, <=)
DSPARK_DEFINE_COMPARE(gt, >)
DSPARK_DEFINE_COMPARE(ge, >=)

typedef uint8_t vb __attribute__((ext_vector_type(kLanes)));

template <typename F, OperandForm form>
void compareLoop(const float *a, const float *b, uint8_t *y, int64_t n) {
  forPairs<form>(a, b, n, [=](vf x, vf z, int64_t at, int64_t lanes) __attribute__((always_inline)) {
    vb flags = __builtin_convertvector(F::apply(x, z) & 1, vb);
    __builtin_memcpy(y + at, &flags, size_t(lanes));
  });
}
template <typename F, OperandForm form>
void compareFloatLoop(const float *a, const float *b, float *y, int64_t n) {
  forPairs<form>(a, b, n, [=](vf x, vf z, int64_t at, int64_t lanes) __attribute__((always_inline)) {
    storeLanes(y + at, asFloat(F::apply(x, z)), lanes);
  });
}

// --- clip, select, conversions

struct Clip {
  static DSPARK_SIMD vf apply(vf x, Params p) {
    vf y = select(x < p.alpha, splat(p.alpha), x);
    return select(y > p.beta, splat(p.beta), y);
  }
};

void selectLoop(const float *condition, const float *a, const float *b, float *y, int64_t n) {
  for (int64_t i = 0; i < n; i += kLanes) {
    int64_t lanes = n - i < kLanes ? n - i : kLanes;
    if (lanes == kLanes)
      store(y + i, select(load(condition + i) != 0.0f, load(a + i), load(b + i)));
    else
      storePart(
          y + i,
          select(loadPart(condition + i, lanes) != 0.0f, loadPart(a + i, lanes), loadPart(b + i, lanes)),
          lanes);
  }
}

void boolToFloat(const uint8_t *x, float *y, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    y[i] = x[i] != 0 ? 1.0f : 0.0f;
}
void f16ToFloat(const uint16_t *x, float *y, int64_t n) {
  int64_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(y + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(x + i))));
#endif
  for (; i < n; ++i)
    y[i] = f16ToF32(x[i]);
}
void floatToF16(const float *x, uint16_t *y, int64_t n) {
  int64_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i *>(y + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#endif
  for (; i < n; ++i)
    y[i] = f32ToF16(x[i]);
}
void bf16ToFloat(const uint16_t *x, float *y, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    y[i] = bf16ToF32(x[i]);
}
void floatToBf16(const float *x, uint16_t *y, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    y[i] = f32ToBf16(x[i]);
}

} // namespace

#define DSPARK_FORMS(loop, F) {loop<F, kBothBlocks>, loop<F, kScalarB>, loop<F, kScalarA>},

extern const FloatLoops DSPARK_FLOAT_LOOPS = {
    {
#define DSPARK_UNARY(name) unaryOf<Unary_##name>(),
#include "kernels/elementwise/kinds.def"
    },
    {
#define DSPARK_BINARY(name)                                                                                  \
  {binaryOf<Binary_##name, kBothBlocks>(), binaryOf<Binary_##name, kScalarB>(),                              \
   binaryOf<Binary_##name, kScalarA>()},
#include "kernels/elementwise/kinds.def"
    },
    {
#define DSPARK_COMPARE(name) DSPARK_FORMS(compareFloatLoop, Compare_##name)
#include "kernels/elementwise/kinds.def"
    },
    {
#define DSPARK_COMPARE(name) DSPARK_FORMS(compareLoop, Compare_##name)
#include "kernels/elementwise/kinds.def"
    },
    unaryLoop<Clip>,
    selectLoop,
    boolToFloat,
    f16ToFloat,
    floatToF16,
    bf16ToFloat,
    floatToBf16,
};

} // namespace dspark
