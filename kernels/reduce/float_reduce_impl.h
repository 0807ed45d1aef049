// Included by float_reduce*.cpp, each compiled for its ISA level; DSPARK_FLOAT_REDUCE names the table.
//
//   row:    | v0 v1 v2 v3 | v0 v1 v2 v3 | ... four vectors of accumulators hide the latency of the adds
//   lanes:  a strip of up to eight vectors walks down 64 rows in registers, then joins acc
#include "kernels/common/vector_math.h"
#include "kernels/reduce/float_reduce.h"

namespace dspark::reduce_ops {
namespace {

using namespace dspark::simd;

constexpr int kRowVectors = 4, kStripVectors = 8;
constexpr int64_t kRowBlock = 64;

template <Fold kFold> DSPARK_SIMD vf identity() {
  return splat(kFold == Fold::Prod  ? 1.0f
               : kFold == Fold::Max ? -__builtin_inff()
               : kFold == Fold::Min ? __builtin_inff()
                                    : 0.0f);
}

template <Fold kFold> DSPARK_SIMD vf fold(vf acc, vf x) {
  if constexpr (kFold == Fold::Sum)
    return acc + x;
  else if constexpr (kFold == Fold::Abs)
    return acc + abs(x);
  else if constexpr (kFold == Fold::Square)
    return fma(x, x, acc);
  else if constexpr (kFold == Fold::Prod)
    return acc * x;
  else if constexpr (kFold == Fold::Max)
    return max(acc, x);
  else
    return min(acc, x);
}

// Joins two accumulators.
template <Fold kFold> DSPARK_SIMD vf join(vf a, vf b) {
  if constexpr (kFold == Fold::Abs || kFold == Fold::Square)
    return a + b;
  else
    return fold<kFold>(a, b);
}

template <Fold kFold> DSPARK_SIMD float across(vf v) {
  float lanes[kLanes];
  store(lanes, v);
  for (int half = kLanes / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) {
      float a = lanes[i], b = lanes[i + half];
      lanes[i] = kFold == Fold::Prod  ? a * b
                 : kFold == Fold::Max ? (a > b || a != a ? a : b)
                 : kFold == Fold::Min ? (a < b || a != a ? a : b)
                                      : a + b;
    }
  return lanes[0];
}

// The first n lanes of x, the identity behind them.
template <Fold kFold> DSPARK_SIMD vf loadRest(const float *x, int64_t n) {
  float lanes[kLanes];
  store(lanes, identity<kFold>());
  __builtin_memcpy(lanes, x, size_t(n) * sizeof(float));
  return load(lanes);
}

template <Fold kFold> float foldRow(const float *x, int64_t n) {
  vf acc[kRowVectors];
  for (vf &a : acc)
    a = identity<kFold>();
  int64_t i = 0;
  for (; i + kRowVectors * kLanes <= n; i += kRowVectors * kLanes)
    for (int v = 0; v < kRowVectors; ++v)
      acc[v] = fold<kFold>(acc[v], load(x + i + v * kLanes));
  for (; i + kLanes <= n; i += kLanes)
    acc[0] = fold<kFold>(acc[0], load(x + i));
  if (i < n)
    acc[1] = fold<kFold>(acc[1], loadRest<kFold>(x + i, n - i));
  return across<kFold>(join<kFold>(join<kFold>(acc[0], acc[1]), join<kFold>(acc[2], acc[3])));
}

// A strip of kVectors vectors. Each lane is a chain of its own, so results do not depend on strip widths.
template <Fold kFold, int kVectors>
DSPARK_SIMD void foldStrip(const float *x, int64_t rows, int64_t stride, float *acc) {
  for (int64_t begin = 0; begin < rows; begin += kRowBlock) {
    int64_t end = begin + kRowBlock < rows ? begin + kRowBlock : rows;
    vf sum[kVectors];
    for (vf &s : sum)
      s = identity<kFold>();
    for (int64_t r = begin; r < end; ++r)
      for (int v = 0; v < kVectors; ++v)
        sum[v] = fold<kFold>(sum[v], load(x + r * stride + v * kLanes));
    for (int v = 0; v < kVectors; ++v)
      store(acc + v * kLanes, join<kFold>(load(acc + v * kLanes), sum[v]));
  }
}

template <Fold kFold>
void foldLanes(const float *x, int64_t rows, int64_t stride, int64_t width, float *acc) {
  constexpr int64_t kStrip = kStripVectors * kLanes;
  int64_t j = 0;
  for (; j + kStrip <= width; j += kStrip)
    foldStrip<kFold, kStripVectors>(x + j, rows, stride, acc + j);
  for (; j + 2 * kLanes <= width; j += 2 * kLanes)
    foldStrip<kFold, 2>(x + j, rows, stride, acc + j);
  for (; j + kLanes <= width; j += kLanes)
    foldStrip<kFold, 1>(x + j, rows, stride, acc + j);
  if (j == width)
    return;
  for (int64_t begin = 0; begin < rows; begin += kRowBlock) {
    int64_t end = begin + kRowBlock < rows ? begin + kRowBlock : rows;
    vf sum = identity<kFold>();
    for (int64_t r = begin; r < end; ++r)
      sum = fold<kFold>(sum, loadPart(x + r * stride + j, width - j));
    storePart(acc + j, join<kFold>(loadPart(acc + j, width - j), sum), width - j);
  }
}

float expRow(const float *x, int64_t n, float shift) {
  vf sum = splat(0), other = splat(0);
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    sum += exp(load(x + i) - shift);
    other += exp(load(x + i + kLanes) - shift);
  }
  for (; i < n; i += kLanes) {
    int64_t rest = n - i < kLanes ? n - i : kLanes;
    sum += exp(loadRest<Fold::Max>(x + i, rest) - shift); // exp(-inf) adds nothing
  }
  return across<Fold::Sum>(sum + other);
}

void expLanes(const float *x, int64_t rows, int64_t stride, int64_t width, const float *shift, float *acc) {
  for (int64_t j = 0; j < width; j += kLanes) {
    int64_t n = width - j < kLanes ? width - j : kLanes;
    vf sum = loadPart(acc + j, n), s = loadPart(shift + j, n);
    for (int64_t r = 0; r < rows; ++r)
      sum += exp(loadPart(x + r * stride + j, n) - s);
    storePart(acc + j, sum, n);
  }
}

} // namespace

extern const FloatReduce DSPARK_FLOAT_REDUCE;
constinit const FloatReduce DSPARK_FLOAT_REDUCE = {
    {foldRow<Fold::Sum>, foldRow<Fold::Abs>, foldRow<Fold::Square>, foldRow<Fold::Prod>, foldRow<Fold::Max>,
     foldRow<Fold::Min>},
    {foldLanes<Fold::Sum>, foldLanes<Fold::Abs>, foldLanes<Fold::Square>, foldLanes<Fold::Prod>,
     foldLanes<Fold::Max>, foldLanes<Fold::Min>},
    expRow,
    expLanes,
};

} // namespace dspark::reduce_ops
