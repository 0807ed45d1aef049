// Included by attention_core*.cpp, each compiled for its ISA level; DSPARK_ATTENTION_CORE names the table.
//
// Register tiles are R rows x V vectors (of keys in scores, of a value row's columns in values): V loads and
// R broadcasts for R V multiply-adds. 16 registers hold 6 x 2 sums, AVX-512's 32 hold 6 x 4, or 6 x 2 beside
// a chain each. Fewer rows take more vectors, so that independent chains cover the latency of the
// multiply-add.
#include "kernels/attention/attention_core.h"
#include "kernels/attention/register_tile.h"
#include "kernels/attention/row_loads.h"
#include "kernels/attention/weigh_loops.h"
#include "kernels/common/contract.h"

namespace dspark {
namespace {

using namespace simd;

/// A score is the sum of so many chains, of every kScoreChains-th product each.
#if defined(__AVX512F__)
constexpr int kSums = 24, kScoreChains = 8, kHalf = 4;
#else
constexpr int kSums = 12, kScoreChains = 1, kHalf = 1;
#endif
constexpr int kScoreSums = 12;
// Columns d .. d+3 of eight rows: a 4x4 transpose in either half.
template <typename T> DSPARK_SIMD void fourColumns(const void *const *rows, int64_t d, v8 (&columns)[4]) {
  v8 v[4];
  for (int i = 0; i < 4; ++i)
    v[i] = twoQuarters(static_cast<const T *>(rows[i]) + d, static_cast<const T *>(rows[i + 4]) + d);
  v8 lows01 = __builtin_shufflevector(v[0], v[1], 0, 8, 1, 9, 4, 12, 5, 13);
  v8 highs01 = __builtin_shufflevector(v[0], v[1], 2, 10, 3, 11, 6, 14, 7, 15);
  v8 lows23 = __builtin_shufflevector(v[2], v[3], 0, 8, 1, 9, 4, 12, 5, 13);
  v8 highs23 = __builtin_shufflevector(v[2], v[3], 2, 10, 3, 11, 6, 14, 7, 15);
  columns[0] = __builtin_shufflevector(lows01, lows23, 0, 1, 8, 9, 4, 5, 12, 13);
  columns[1] = __builtin_shufflevector(lows01, lows23, 2, 3, 10, 11, 6, 7, 14, 15);
  columns[2] = __builtin_shufflevector(highs01, highs23, 0, 1, 8, 9, 4, 5, 12, 13);
  columns[3] = __builtin_shufflevector(highs01, highs23, 2, 3, 10, 11, 6, 7, 14, 15);
}
DSPARK_SIMD void packFour(const void *const *rows, int64_t d, float *to) {
  v8 columns[4];
  fourColumns<float>(rows, d, columns);
  for (int i = 0; i < 4; ++i)
    *reinterpret_cast<v8Unaligned *>(to + i * kKeyPanel) = columns[i];
}

void pack(const void *const *rows, int64_t size, float *panel) {
  DSPARK_EXPECTS(rows && panel && size >= 0);
  int64_t d = 0;
  for (; d + 4 <= size; d += 4) {
    packFour(rows, d, panel + d * kKeyPanel);
    packFour(rows + 8, d, panel + d * kKeyPanel + 8);
  }
  for (; d < size; ++d)
    for (int j = 0; j < kKeyPanel; ++j)
      panel[d * kKeyPanel + j] = static_cast<const float *>(rows[j])[d];
}

} // namespace
} // namespace dspark

#if defined(__AVX512F__)
#include "kernels/attention/key_scores_lanes.h"
#else
#include "kernels/attention/key_scores_columns.h"
#endif

namespace dspark {
namespace {

/// R rows by P panels.
template <int R, int P>
DSPARK_SIMD void scoreTile(const float *q, int64_t size, const float *panels, float *scores) {
  constexpr int V = P * kPanelVectors;
  vf sum[R][V];
  for (int chain = 0; chain < kScoreChains; ++chain) {
    vf acc[R][V] = {};
    for (int64_t d = chain; d < size; d += kScoreChains) {
      vf k[V];
      for (int p = 0; p < P; ++p)
        for (int v = 0; v < kPanelVectors; ++v)
          k[p * kPanelVectors + v] = load(panels + (p * size + d) * kKeyPanel + v * kLanes);
      for (int r = 0; r < R; ++r) {
        vf x = splat(q[r * size + d]);
        for (int v = 0; v < V; ++v)
          acc[r][v] = fma(x, k[v], acc[r][v]);
      }
    }
    // The first half of the chains' sum waits in `scores`.
    bool isFirst = chain % kHalf == 0, isLast = chain % kHalf == kHalf - 1;
    for (int r = 0; r < R; ++r)
      for (int v = 0; v < V; ++v) {
        sum[r][v] = isFirst ? acc[r][v] : sum[r][v] + acc[r][v];
        float *to = scores + r * kKeyBlock + v * kLanes;
        if (isLast)
          store(to, chain < kHalf ? sum[r][v] : load(to) + sum[r][v]);
      }
  }
}

} // namespace
} // namespace dspark

#include "kernels/attention/score_panels.h"

namespace dspark {
namespace {

/// Few rows cost less without a panel's transposition, which is a third of the time of 16 (AVX-512).
#if defined(__AVX512F__)
constexpr int64_t kDirectRows = 16;
#else
constexpr int64_t kDirectRows = 4;
#endif

/// R rows by all panels' keys; more rows than fit one tile go over a panel while it is in L1.
template <typename T, int R>
void keyScoresRest(const float *q, int64_t rows, int64_t size, const void *const *keys, float *scores) {
  if constexpr (R > 0) {
    if (rows != R)
      return keyScoresRest<T, R - 1>(q, rows, size, keys, scores);
    KeyPanel<T>::template run<R>(q, size, keys, scores);
  }
}
template <typename T>
void keyScores(const float *q, int64_t rows, int64_t size, const void *const *keys, int64_t count,
               float *scores) {
  DSPARK_EXPECTS(keys && count % kKeyPanel == 0 && isReadable(q, rows * size));
  constexpr int kMost = KeyPanel<T>::kMostRows;
  for (int64_t j = 0; j < count; j += kKeyPanel)
    for (int64_t r = 0; r < rows; r += kMost)
      keyScoresRest<T, kMost>(q + r * size, rows - r < kMost ? rows - r : kMost, size, keys + j,
                              scores + r * kKeyBlock + j);
}

AttentionPart weigh(float *row, int64_t low, int64_t high, float softcap, const float *bias) {
  SeenScores seen = seenScores(row, low, high, softcap, bias);
  AttentionPart part;
  part.max = seen.max;
  float shift = seen.shift();
  vf sum = splat(0);
  for (int64_t j = seen.from; j < seen.to; j += kLanes) {
    vf p = expNegative(load(row + j) - shift);
    sum += p;
    store(row + j, p);
  }
  part.sum = across(sum, [](auto a, auto b) { return a + b; });
  return part;
}

template <typename T, bool Ahead, int R, int V>
DSPARK_SIMD void valueTile(const float *weights, const void *const *values, int64_t count, int64_t column,
                           int64_t width, float *out) {
  vf acc[R][V];
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < V; ++v)
      acc[r][v] = load(out + r * width + column + v * kLanes);
  for (int64_t j = 0; j < count; ++j) {
    const T *value = static_cast<const T *>(values[j]) + column;
    if constexpr (Ahead)
      for (int64_t c = 0; c < V * kLanes; c += kLineElements<T>)
        ask<T>(values[j + kRowsAhead], column + c);
    vf x[V];
    for (int v = 0; v < V; ++v)
      x[v] = loadRow(value + v * kLanes);
    for (int r = 0; r < R; ++r) {
      vf p = splat(weights[r * kKeyBlock + j]);
      for (int v = 0; v < V; ++v)
        acc[r][v] = fma(p, x[v], acc[r][v]);
    }
  }
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < V; ++v)
      store(out + r * width + column + v * kLanes, acc[r][v]);
}

/// Columns from `column` in tiles of V vectors, then of fewer.
template <typename T, bool Ahead, int R, int V>
DSPARK_SIMD void valueColumns(const float *weights, const void *const *values, int64_t count, int64_t column,
                              int64_t width, float *out) {
  for (; column + V * kLanes <= width; column += V * kLanes)
    valueTile<T, Ahead, R, V>(weights, values, count, column, width, out);
  if constexpr (V > 1)
    valueColumns<T, Ahead, R, V / 2>(weights, values, count, column, width, out);
}

/// R rows that all see values [begin, end) of the block; `values` starts at value `first`.
template <typename T, bool Ahead, int R>
void valueRows(const float *weights, const void *const *values, int64_t first, int64_t begin, int64_t end,
               int64_t width, float *out) {
  if (begin < end)
    valueColumns<T, Ahead, R, vectorsPerTile(R, kSums)>(weights + begin, values + (begin - first),
                                                        end - begin, 0, width, out);
}

DSPARK_SIMD int64_t clampTo(int64_t v, int64_t low, int64_t high) {
  return v < low ? low : v > high ? high : v;
}

/// The values that all R rows see together; those at the edges that only some see, row by row.
template <typename T, bool Ahead, int R>
void valueGroup(const float *weights, const int32_t *low, const int32_t *high, const void *const *values,
                int64_t begin, int64_t end, int64_t width, float *out) {
  int64_t from = begin, to = end;
  for (int r = 0; r < R; ++r) {
    from = clampTo(low[r], from, end);
    to = clampTo(high[r], begin, to);
  }
  to = to < from ? from : to;
  for (int r = 0; r < R; ++r)
    valueRows<T, Ahead, 1>(weights + r * kKeyBlock, values, begin, clampTo(low[r], begin, from),
                           clampTo(high[r], begin, from), width, out + r * width);
  valueRows<T, Ahead, R>(weights, values, begin, from, to, width, out);
  for (int r = 0; r < R; ++r)
    valueRows<T, Ahead, 1>(weights + r * kKeyBlock, values, begin, clampTo(low[r], to, end),
                           clampTo(high[r], to, end), width, out + r * width);
}

template <typename T, bool Ahead, int R>
void valueRest(const float *weights, const int32_t *low, const int32_t *high, int64_t rows,
               const void *const *values, int64_t begin, int64_t end, int64_t width, float *out) {
  if constexpr (R > 0) {
    if (rows != R)
      return valueRest<T, Ahead, R - 1>(weights, low, high, rows, values, begin, end, width, out);
    valueGroup<T, Ahead, R>(weights, low, high, values, begin, end, width, out);
  }
}

template <typename T, bool Ahead>
void valuesOf(const float *weights, const int32_t *low, const int32_t *high, int64_t rows,
              const void *const *values, int64_t begin, int64_t end, int64_t width, float *out) {
  int64_t r = 0;
  for (; r + kTileRows <= rows; r += kTileRows)
    valueGroup<T, Ahead, kTileRows>(weights + r * kKeyBlock, low + r, high + r, values, begin, end, width,
                                    out + r * width);
  valueRest<T, Ahead, kTileRows - 1>(weights + r * kKeyBlock, low + r, high + r, rows - r, values, begin, end,
                                     width, out + r * width);
}
template <typename T>
void values(const float *weights, const int32_t *low, const int32_t *high, int64_t rows,
            const void *const *values, int64_t begin, int64_t end, bool ahead, int64_t width, float *out) {
  (ahead ? valuesOf<T, true> : valuesOf<T, false>)(weights, low, high, rows, values, begin, end, width, out);
}

} // namespace

extern const AttentionCore DSPARK_ATTENTION_CORE;
constinit const AttentionCore DSPARK_ATTENTION_CORE = {
    kDirectRows,
    nullptr,
    pack,
    scores,
#ifdef DSPARK_HALF_ROWS
    {keyScores<float>, keyScores<F16>, keyScores<BF16>},
    weigh,
    {values<float>, values<F16>, values<BF16>},
#else
    {keyScores<float>, nullptr, nullptr},
    weigh,
    {values<float>, nullptr, nullptr},
#endif
    merge,
    finish,
};

} // namespace dspark
