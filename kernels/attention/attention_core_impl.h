// Included by attention_core*.cpp, each compiled for its ISA level; DSPARK_ATTENTION_CORE names the table.
//
// Register tiles are R rows x V vectors (of keys in scores, of a value row's columns in values): V loads and
// R broadcasts for R V multiply-adds. 16 registers hold 6 x 2 sums, AVX-512's 32 hold 6 x 4, or 6 x 2 beside
// a chain each. Fewer rows take more vectors, so that independent chains cover the latency of the
// multiply-add.
#include "kernels/attention/attention_core.h"
#include "kernels/attention/row_loads.h"
#include "kernels/common/contract.h"

namespace dspark {
namespace {

using namespace simd;

constexpr float kInf = __builtin_inff();

/// A score is the sum of so many chains, of every kScoreChains-th product each.
#if defined(__AVX512F__)
constexpr int kSums = 24, kScoreChains = 8, kHalf = 4;
#else
constexpr int kSums = 12, kScoreChains = 1, kHalf = 1;
#endif
constexpr int kTileRows = 6;
constexpr int vectorsPerTile(int rows, int sums = kSums) {
  int vectors = sums / rows;
  return vectors >= 8 ? 8 : vectors >= 4 ? 4 : 2;
}

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

constexpr int kPanelVectors = int(kKeyPanel) / kLanes;

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

/// As many panels at a time as fit the registers, then fewer.
template <int R, int P>
DSPARK_SIMD void scorePanels(const float *q, int64_t size, const float *panels, int64_t from, int64_t count,
                             float *scores) {
  for (; from + P <= count; from += P)
    scoreTile<R, P>(q, size, panels + from * size * kKeyPanel, scores + from * kKeyPanel);
  if constexpr (P > 1)
    scorePanels<R, P / 2>(q, size, panels, from, count, scores);
}
template <int R>
void scoreRows(const float *q, int64_t size, const float *panels, int64_t count, float *scores) {
  constexpr int P = vectorsPerTile(R, 12) / kPanelVectors;
  scorePanels<R, (P > 0 ? P : 1)>(q, size, panels, 0, count, scores);
}
template <int R>
void scoreRest(const float *q, int64_t rows, int64_t size, const float *panels, int64_t count,
               float *scores) {
  if constexpr (R > 0) {
    if (rows != R)
      return scoreRest<R - 1>(q, rows, size, panels, count, scores);
    scoreRows<R>(q, size, panels, count, scores);
  }
}

void scores(const float *q, int64_t rows, int64_t size, const float *panels, int64_t keys, float *scores) {
  DSPARK_EXPECTS(rows >= 0 && size >= 0 && keys >= 0 && keys <= kKeyBlock);
  DSPARK_EXPECTS(isReadable(q, rows * size) && isReadable(scores, rows * keys));
  int64_t r = 0, count = keys / kKeyPanel;
  for (; r + kTileRows <= rows; r += kTileRows)
    scoreRows<kTileRows>(q + r * size, size, panels, count, scores + r * kKeyBlock);
  scoreRest<kTileRows - 1>(q + r * size, rows - r, size, panels, count, scores + r * kKeyBlock);
}

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

/// Lane i joins lane i + 8, then i + 4, and so on.
template <typename Join> DSPARK_SIMD float across(vf v, Join join) {
#if defined(__AVX512F__)
  v = join(v, __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7));
  v = join(v, __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3));
  v = join(v, __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13));
  return join(v, __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14))[0];
#else
  float lanes[kLanes];
  store(lanes, v);
  for (int half = kLanes / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i)
      lanes[i] = join(lanes[i], lanes[i + half]);
  return lanes[0];
#endif
}

/// Softcap and bias; lanes outside [low, high) are touched too.
void adjust(float *row, int64_t low, int64_t high, float softcap, const float *bias) {
  float inverseCap = softcap > 0 ? 1 / softcap : 0;
  for (int64_t j = low / kLanes * kLanes; j < high; j += kLanes) {
    vf s = load(row + j);
    if (softcap > 0)
      s = tanh(s * inverseCap) * softcap;
    if (bias) {
      vf b = high - j < kLanes ? loadPart(bias + j, high - j) : load(bias + j);
      s = select(b == -kInf, b, s + b);
    }
    store(row + j, s);
  }
}

/// Lanes outside [low, high) become -inf, as a whole vector: one of lanes stored singly is slow to load.
DSPARK_SIMD void hideOutside(float *row, int64_t low, int64_t high) {
  vi lane;
  for (int i = 0; i < kLanes; ++i)
    lane[i] = i;
  store(row, select((lane >= int32_t(low)) & (lane < int32_t(high)), load(row), splat(-kInf)));
}

/// The largest of whole vectors; NaN is passed over.
DSPARK_SIMD float largest(const float *row, int64_t from, int64_t to) {
  vf top[4] = {splat(-kInf), splat(-kInf), splat(-kInf), splat(-kInf)};
  int64_t j = from;
  for (; j + 4 * kLanes <= to; j += 4 * kLanes)
    for (int v = 0; v < 4; ++v) {
      vf s = load(row + j + v * kLanes);
      top[v] = select(s > top[v], s, top[v]);
    }
  for (; j < to; j += kLanes)
    top[0] = select(load(row + j) > top[0], load(row + j), top[0]);
  for (int v = 1; v < 4; ++v)
    top[0] = select(top[v] > top[0], top[v], top[0]);
  return across(top[0], [](auto a, auto b) { return a > b ? a : b; });
}

AttentionPart weigh(float *row, int64_t low, int64_t high, float softcap, const float *bias) {
  DSPARK_EXPECTS(low >= 0 && high <= kKeyBlock && isReadable(row, high - low));
  if (softcap > 0 || bias)
    adjust(row, low, high, softcap, bias);
  // Whole vectors from here: what the row does not see is -inf and gets weight 0.
  int64_t from = low / kLanes * kLanes, to = (high + kLanes - 1) / kLanes * kLanes;
  if (from < low)
    hideOutside(row + from, low - from, high - from);
  if (high < to)
    hideOutside(row + to - kLanes, low - (to - kLanes), high - (to - kLanes));
  AttentionPart part;
  part.max = largest(row, from, to);
  // NaN stays NaN below; where all is hidden, 0 keeps -inf - max at -inf.
  float shift = part.max == -kInf ? 0.0f : part.max;
  vf sum = splat(0);
  for (int64_t j = from; j < to; j += kLanes) {
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
    valueColumns<T, Ahead, R, vectorsPerTile(R)>(weights + begin, values + (begin - first), end - begin, 0,
                                                 width, out);
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

DSPARK_SIMD float expOf(float x) { return expNegative(splat(x))[0]; }

void merge(AttentionPart &total, float *totalValues, const AttentionPart &part, const float *values,
           int64_t width) {
  if (part.sum == 0)
    return;
  if (total.sum == 0) {
    total = part;
    __builtin_memcpy(totalValues, values, size_t(width) * sizeof(float));
    return;
  }
  float top = part.max > total.max ? part.max : total.max;
  float shift = top == -kInf ? 0.0f : top;
  float keep = expOf(total.max - shift), add = expOf(part.max - shift);
  total.sum = total.sum * keep + part.sum * add;
  total.max = top;
  for (int64_t c = 0; c < width; c += kLanes)
    store(totalValues + c, fma(load(totalValues + c), splat(keep), load(values + c) * add));
}

void finish(const AttentionPart &total, const float *values, float sink, float unseen, int64_t width,
            float *y) {
  float top = sink > total.max ? sink : total.max, shift = top == -kInf ? 0.0f : top;
  float keep = expOf(total.max - shift),
        sum = total.sum * keep + (sink == -kInf ? 0.0f : expOf(sink - shift));
  float scale = sum == 0 ? unseen : keep / sum;
  for (int64_t c = 0; c < width; c += kLanes)
    store(y + c, load(values + c) * scale);
}

} // namespace

extern const AttentionCore DSPARK_ATTENTION_CORE;
constinit const AttentionCore DSPARK_ATTENTION_CORE = {
    kDirectRows,
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
