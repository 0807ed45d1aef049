// Included by float_reduce*.cpp, each compiled for its ISA level; DSPARK_FLOAT_REDUCE names the table.
//
//   row:    | v0 v1 v2 v3 | v0 v1 v2 v3 | ... four vectors of accumulators hide the latency of the adds
//   lanes:  a strip of up to eight vectors walks down 64 rows in registers, then joins acc
//   short:  a vector of rows at once, their columns transposed into lanes four at a time
#include "kernels/common/contract.h"
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
  DSPARK_EXPECTS(x && n > 0 && n <= kFoldRow);
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
  DSPARK_EXPECTS(isReadable(acc, width) && isReadable(x, rows * width));
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

// Columns 0 to 3 of kLanes rows that are n elements apart.
DSPARK_SIMD void loadColumns(const float *x, int64_t n, vf (&column)[4]) {
  typedef float quad __attribute__((ext_vector_type(4)));
  typedef float quadUnaligned __attribute__((ext_vector_type(4), aligned(4)));
#pragma clang loop unroll(full)
  for (int r = 0; r < kLanes; r += 4) {
    auto row = [&](int k) { return quad(*reinterpret_cast<const quadUnaligned *>(x + (r + k) * n)); };
    quad a = row(0), b = row(1), c = row(2), d = row(3);
    quad ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), cd = __builtin_shufflevector(c, d, 0, 4, 1, 5),
         abHigh = __builtin_shufflevector(a, b, 2, 6, 3, 7),
         cdHigh = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    quad columns[4] = {__builtin_shufflevector(ab, cd, 0, 1, 4, 5),
                       __builtin_shufflevector(ab, cd, 2, 3, 6, 7),
                       __builtin_shufflevector(abHigh, cdHigh, 0, 1, 4, 5),
                       __builtin_shufflevector(abHigh, cdHigh, 2, 3, 6, 7)};
#pragma clang loop unroll(full)
    for (int k = 0; k < 4; ++k)
      __builtin_memcpy(reinterpret_cast<char *>(&column[k]) + r * sizeof(float), &columns[k], sizeof(quad));
  }
}

// kLanes rows; column i goes to chain i % 4.
template <Fold kFold> DSPARK_SIMD vf foldColumns(const float *x, int64_t n) {
  vf acc[4];
  for (vf &a : acc)
    a = identity<kFold>();
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    vf column[4];
    loadColumns(x + i, n, column);
    for (int k = 0; k < 4; ++k)
      acc[k] = fold<kFold>(acc[k], column[k]);
  }
#pragma clang loop unroll(full)
  for (int k = 0; k < 3; ++k)
    if (i + k < n) {
      vf column;
      for (int r = 0; r < kLanes; ++r)
        column[r] = x[r * n + i + k];
      acc[k] = fold<kFold>(acc[k], column);
    }
  return join<kFold>(join<kFold>(acc[0], acc[1]), join<kFold>(acc[2], acc[3]));
}

template <Fold kFold> void foldShortRows(const float *x, int64_t rows, int64_t n, float *y) {
  DSPARK_EXPECTS(n > 0 && n <= kShortRow && isReadable(x, rows) && isReadable(y, rows));
  int64_t r = 0;
  for (; r + kLanes <= rows; r += kLanes)
    store(y + r, foldColumns<kFold>(x + r * n, n));
  if (r == rows)
    return;
  float rest[kLanes * kShortRow];
  __builtin_memset(rest, 0, size_t(kLanes * n) * sizeof(float));
  __builtin_memcpy(rest, x + r * n, size_t((rows - r) * n) * sizeof(float));
  storePart(y + r, foldColumns<kFold>(rest, n), rows - r);
}

float expRow(const float *x, int64_t n, float shift) {
  DSPARK_EXPECTS(x && n > 0 && n <= kFoldRow);
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
    {foldShortRows<Fold::Sum>, foldShortRows<Fold::Abs>, foldShortRows<Fold::Square>,
     foldShortRows<Fold::Prod>, foldShortRows<Fold::Max>, foldShortRows<Fold::Min>},
    expRow,
    expLanes,
};

} // namespace dspark::reduce_ops
