// Included by float_norm*.cpp, each compiled for its ISA level; DSPARK_FLOAT_NORM names the table.
#include "kernels/common/across.h"
#include "kernels/common/contract.h"
#include "kernels/common/vector_math.h"
#include "kernels/norm/float_norm.h"

namespace dspark::norm_ops {
namespace {

using namespace dspark::simd;

constexpr float kInf = __builtin_inff();

DSPARK_SIMD float sumAcross(vf v) {
  return across(v, [](auto a, auto b) { return a + b; });
}
DSPARK_SIMD float maxAcross(vf v) {
  return across(v, [](auto a, auto b) { return ((a > b) | (a != a)) ? a : b; });
}

// The first n lanes of x, `rest` behind them.
DSPARK_SIMD vf loadRest(const float *x, int64_t n, float rest) {
  float lanes[kLanes];
  store(lanes, splat(rest));
  __builtin_memcpy(lanes, x, size_t(n) * sizeof(float));
  return load(lanes);
}

// v's first n lanes, 0 behind them.
DSPARK_SIMD vf firstLanes(vf v, int64_t n) {
  float lanes[kLanes];
  store(lanes, v);
  return loadPart(lanes, n);
}

struct Yes {
  static constexpr bool value = true;
};
struct No {
  static constexpr bool value = false;
};

// Calls f(i, n) for the vectors at i, where n is kLanes for all but the last.
template <typename F> DSPARK_SIMD void forVectors(int64_t n, F f) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    f(i, kLanes);
  if (i < n)
    f(i, n - i);
}
DSPARK_SIMD vf loadSome(const float *x, int64_t n) { return n == kLanes ? load(x) : loadPart(x, n); }
DSPARK_SIMD void storeSome(float *y, vf v, int64_t n) {
  if (n == kLanes)
    store(y, v);
  else
    storePart(y, v, n);
}

DSPARK_SIMD float maxRow(const float *x, int64_t n) {
  vf a = splat(-kInf), b = a;
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    a = max(a, load(x + i));
    b = max(b, load(x + i + kLanes));
  }
  for (; i < n; i += kLanes)
    a = max(a, n - i < kLanes ? loadRest(x + i, n - i, -kInf) : load(x + i));
  return maxAcross(max(a, b));
}

void softmaxRow(const float *x, float *y, int64_t n, bool isLog) {
  DSPARK_EXPECTS(isReadable(x, n) && isReadable(y, n));
  float top = maxRow(x, n);
  vf sum = splat(0);
  forVectors(n, [&](int64_t i, int64_t count) {
    vf e = exp((count == kLanes ? load(x + i) : loadRest(x + i, count, -kInf)) - top);
    sum += count == kLanes ? e : firstLanes(e, count);
    if (!isLog)
      storeSome(y + i, e, count);
  });
  float total = sumAcross(sum);
  if (!isLog) {
    float inverse = 1.0f / total;
    forVectors(n,
               [&](int64_t i, int64_t count) { storeSome(y + i, loadSome(y + i, count) * inverse, count); });
    return;
  }
  float lanes[kLanes];
  store(lanes, log(splat(total)));
  float logSum = lanes[0];
  forVectors(
      n, [&](int64_t i, int64_t count) { storeSome(y + i, loadSome(x + i, count) - top - logSum, count); });
}

void softmaxLanes(const float *x, float *y, int64_t size, int64_t stride, int64_t width, bool isLog) {
  DSPARK_EXPECTS(stride >= width && isReadable(x, size * width) && isReadable(y, size * width));
  forVectors(width, [&](int64_t j, int64_t count) {
    vf top = splat(-kInf), sum = splat(0);
    for (int64_t r = 0; r < size; ++r)
      top = max(top, loadSome(x + r * stride + j, count));
    for (int64_t r = 0; r < size; ++r) {
      vf e = exp(loadSome(x + r * stride + j, count) - top);
      sum += e;
      if (!isLog)
        storeSome(y + r * stride + j, e, count);
    }
    vf logSum = log(sum), inverse = 1.0f / sum;
    for (int64_t r = 0; r < size; ++r) {
      int64_t at = r * stride + j;
      vf v = isLog ? loadSome(x + at, count) - top - logSum : loadSome(y + at, count) * inverse;
      storeSome(y + at, v, count);
    }
  });
}

// The sum over a row of f(vector, lanes in it): four accumulators, joined into a total every 4096 elements.
template <typename F> DSPARK_SIMD float sumRow(const float *x, int64_t n, F f) {
  float total = 0;
  for (int64_t begin = 0; begin < n; begin += 4096) {
    int64_t end = begin + 4096 < n ? begin + 4096 : n, i = begin;
    vf acc[4] = {splat(0), splat(0), splat(0), splat(0)};
    for (; i + 4 * kLanes <= end; i += 4 * kLanes)
      for (int v = 0; v < 4; ++v)
        acc[v] += f(load(x + i + v * kLanes), kLanes);
    for (; i < end; i += kLanes) {
      int64_t count = end - i < kLanes ? end - i : kLanes;
      acc[0] += f(loadSome(x + i, count), count);
    }
    total += sumAcross((acc[0] + acc[1]) + (acc[2] + acc[3]));
  }
  return total;
}

float mean(const float *x, int64_t n) {
  return sumRow(x, n, [](vf v, int64_t) { return v; }) / float(n);
}

float meanSquare(const float *x, int64_t n, float mean) {
  return sumRow(x, n,
                [mean](vf v, int64_t count) {
                  vf d = v - mean;
                  return count == kLanes ? d * d : firstLanes(d * d, count);
                }) /
         float(n);
}

void normalize(const float *x, float *y, int64_t n, float mean, float inverse, const float *scale,
               const float *bias) {
  DSPARK_EXPECTS(isReadable(x, n) && isReadable(y, n));
  auto map = [&](auto withScale, auto withBias) {
    forVectors(n, [&](int64_t i, int64_t count) {
      vf v = (loadSome(x + i, count) - mean) * inverse;
      if constexpr (withScale.value)
        v = v * loadSome(scale + i, count);
      if constexpr (withBias.value)
        v = v + loadSome(bias + i, count);
      storeSome(y + i, v, count);
    });
  };
  if (scale && bias)
    map(Yes(), Yes());
  else if (scale)
    map(Yes(), No());
  else if (bias)
    map(No(), Yes());
  else
    map(No(), No());
}

void scaleRow(const float *x, float *y, int64_t n, float shift, float scale, float bias) {
  DSPARK_EXPECTS(isReadable(x, n) && isReadable(y, n));
  forVectors(n, [&](int64_t i, int64_t count) {
    storeSome(y + i, fma(loadSome(x + i, count) - shift, splat(scale), splat(bias)), count);
  });
}

} // namespace

extern const FloatNorm DSPARK_FLOAT_NORM;
constinit const FloatNorm DSPARK_FLOAT_NORM = {softmaxRow, softmaxLanes, mean,
                                               meanSquare, normalize,    scaleRow};

} // namespace dspark::norm_ops
