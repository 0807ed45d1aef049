// The loops of attention_core_avx512bf16.cpp on pairs of bf16.
#pragma once
#include "kernels/attention/register_tile.h"
#include "kernels/attention/weigh_loops.h"

namespace dspark {
namespace {

using namespace simd;

DSPARK_SIMD vf addPairs(vf x, vf y, vf sum) {
  return vf(_mm512_dpbf16_ps(__m512(sum), __m512bh(x), __m512bh(y)));
}
/// 32 floats to the nearest bf16.
DSPARK_SIMD __m512i rounded(vf low, vf high) {
  return (__m512i)_mm512_cvtne2ps_pbh(__m512(high), __m512(low));
}
DSPARK_SIMD __m512i roundedPart(const float *from, int64_t count) {
  auto lanes = [&](int64_t first) __attribute__((always_inline)) {
    int64_t left = count - first;
    return left >= kLanes ? load(from + first) : left > 0 ? loadPart(from + first, left) : splat(0);
  };
  return rounded(lanes(0), lanes(kLanes));
}
constexpr int64_t kPairsOfVector = 16;

// Element (i, j) becomes (j, i).
DSPARK_SIMD void transpose(__m512i (&v)[16]) {
  __m512i t[16];
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
  }
  // v[4 g + c]: of rows 4 g .. 4 g + 3, column 4 q + c in quarter q.
  for (int i = 0; i < 16; i += 4) {
    v[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    v[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    v[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    v[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  for (int c = 0; c < 4; ++c) {
    __m512i first = _mm512_shuffle_i32x4(v[c], v[4 + c], 0x88),
            second = _mm512_shuffle_i32x4(v[c], v[4 + c], 0xdd);
    __m512i third = _mm512_shuffle_i32x4(v[8 + c], v[12 + c], 0x88),
            fourth = _mm512_shuffle_i32x4(v[8 + c], v[12 + c], 0xdd);
    t[c] = _mm512_shuffle_i32x4(first, third, 0x88);
    t[4 + c] = _mm512_shuffle_i32x4(second, fourth, 0x88);
    t[8 + c] = _mm512_shuffle_i32x4(first, third, 0xdd);
    t[12 + c] = _mm512_shuffle_i32x4(second, fourth, 0xdd);
  }
  for (int i = 0; i < 16; ++i)
    v[i] = t[i];
}

void packPairs(const void *const *rows, int64_t size, float *panel) {
  DSPARK_EXPECTS(rows && panel && size >= 0);
  for (int64_t d = 0; d < size; d += 2 * kPairsOfVector) {
    __m512i v[16];
    for (int j = 0; j < 16; ++j) {
      const float *row = static_cast<const float *>(rows[j]) + d;
      v[j] = size - d >= 2 * kPairsOfVector ? rounded(load(row), load(row + kLanes))
                                            : roundedPart(row, size - d);
    }
    transpose(v);
    int64_t pairs = (size - d + 1) / 2 < kPairsOfVector ? (size - d + 1) / 2 : kPairsOfVector;
    for (int64_t i = 0; i < pairs; ++i)
      _mm512_storeu_si512(panel + (d / 2 + i) * kKeyPanel, v[i]);
  }
}

/// Rows of `size` floats become pairs where they lie, with a zero behind an odd one.
void roundQueries(float *q, int64_t rows, int64_t size) {
  for (int64_t r = 0; r < rows; ++r, q += size)
    for (int64_t d = 0; d < size; d += 2 * kPairsOfVector) {
      int64_t pairs = (size - d + 1) / 2;
      __m512i v = roundedPart(q + d, size - d);
      _mm512_mask_storeu_epi32(q + d / 2, pairs < 16 ? __mmask16((1 << pairs) - 1) : __mmask16(0xffff), v);
    }
}

constexpr int kScoreSums = 24;

/// R rows by P panels of (size + 1) / 2 pairs, `size` apart as f32's.
template <int R, int P>
DSPARK_SIMD void scoreTile(const float *q, int64_t size, const float *panels, float *scores) {
  vf sum[R][P];
  for (int r = 0; r < R; ++r)
    for (int p = 0; p < P; ++p)
      sum[r][p] = splat(0);
  for (int64_t i = 0; i < (size + 1) / 2; ++i) {
    vf k[P];
    for (int p = 0; p < P; ++p)
      k[p] = load(panels + (p * size + i) * kKeyPanel);
    for (int r = 0; r < R; ++r) {
      vf x = splat(q[r * size + i]);
      for (int p = 0; p < P; ++p)
        sum[r][p] = addPairs(k[p], x, sum[r][p]);
    }
  }
  for (int r = 0; r < R; ++r)
    for (int p = 0; p < P; ++p)
      store(scores + r * kKeyBlock + p * kKeyPanel, sum[r][p]);
}

/// e^x for x <= 0, off by at most 7.6e-5 of itself, a twenty-fifth of what rounding to bf16 may lose: 2^t by
/// the polynomial in t - floor(t) of least largest error (own fit).
DSPARK_SIMD vf expForPairs(vf x) {
  __m512 t = __m512(x * 1.44269504088896341f);
  vf f = vf(_mm512_reduce_ps(t, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC));
  vf p = fma(f, splat(0x1.3f96a4p-4f), splat(0x1.cefc4cp-3f));
  p = fma(f, fma(f, p, splat(0x1.64444cp-1f)), splat(0x1.fff632p-1f));
  return vf(_mm512_scalef_ps(__m512(p), t));
}

/// As weigh() of attention_core_impl.h, but the weights [low, high) of a row become pairs where they lie.
AttentionPart weighInPairs(float *row, int64_t low, int64_t high, float softcap, const float *bias) {
  AttentionPart part;
  SeenScores seen = seenScores(row, low, high, softcap, bias);
  part.max = seen.max;
  vf shift = splat(seen.shift()), sum = splat(0);
  for (int64_t j = seen.from / 32 * 32; j < seen.to; j += 32) {
    auto weights = [&](int64_t at) __attribute__((always_inline)) {
      return at >= seen.from && at < seen.to ? expForPairs(load(row + at) - shift) : splat(0);
    };
    vf first = weights(j), second = weights(j + kLanes);
    sum += first;
    sum += second;
    _mm512_storeu_si512(row + j / 2, rounded(first, second));
  }
  part.sum = across(sum, [](auto a, auto b) { return a + b; });
  return part;
}

/// Of values that are packed at a time: keys, and vectors of columns.
constexpr int64_t kValueKeys = 128;
constexpr int kValueVectors = 4;

/// [pairs of keys][kValueVectors][16 columns][2], and the keys' place in the block.
struct ValuePairs {
  int64_t begin, end; // begin is even
  alignas(64) float of[kValueKeys / 2][kValueVectors][kLanes];
};

/// `values` points to the rows of key `pairs.begin` onwards.
template <int V> DSPARK_SIMD void packValues(const void *const *values, int64_t column, ValuePairs &pairs) {
  for (int64_t j = 0, count = pairs.end - pairs.begin; j < count; j += 2) {
    bool hasOdd = j + 1 < count;
    const float *even = static_cast<const float *>(values[j]) + column;
    const float *odd = static_cast<const float *>(values[hasOdd ? j + 1 : j]) + column;
    for (int v = 0; v < V; ++v) {
      vf low = load(even + v * kLanes), high = hasOdd ? load(odd + v * kLanes) : splat(0);
      // Words 0 to 15 are the even key's, 16 to 31 the odd one's.
      typedef uint16_t words __attribute__((ext_vector_type(32)));
      words both = __builtin_bit_cast(words, rounded(low, high));
      store(pairs.of[j / 2][v],
            __builtin_bit_cast(vf, __builtin_shufflevector(both, both, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5,
                                                           21, 6, 22, 7, 23, 8, 24, 9, 25, 10, 26, 11, 27, 12,
                                                           28, 13, 29, 14, 30, 15, 31)));
    }
  }
}

/// The pairs [from, to) of the block, counted in keys, which all R rows see.
template <int R, int V>
DSPARK_SIMD void pairValueTile(const float *weights, const ValuePairs &pairs, int64_t from, int64_t to,
                               int64_t width, float *out) {
  vf sum[R][V];
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < V; ++v)
      sum[r][v] = load(out + r * width + v * kLanes);
  for (int64_t i = from / 2; i < to / 2; ++i) {
    const auto &value = pairs.of[i - pairs.begin / 2];
    for (int r = 0; r < R; ++r) {
      vf x = splat(weights[r * kKeyBlock + i]);
      for (int v = 0; v < V; ++v)
        sum[r][v] = addPairs(load(value[v]), x, sum[r][v]);
    }
  }
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < V; ++v)
      store(out + r * width + v * kLanes, sum[r][v]);
}

/// Keys [from, to) for one row.
template <int V>
DSPARK_SIMD void valueEdge(const float *weights, const ValuePairs &pairs, int64_t from, int64_t to,
                           float *out) {
  auto half = [](vf pair, bool isOdd) __attribute__((always_inline)) {
    return fromBits(isOdd ? bits(pair) & int32_t(0xffff0000) : bits(pair) << 16);
  };
  for (int64_t i = from / 2; i < (to + 1) / 2; ++i)
    for (bool isOdd : {true, false}) {
      if (int64_t key = 2 * i + isOdd; key < from || key >= to)
        continue;
      vf x = half(splat(weights[i]), isOdd);
      for (int v = 0; v < V; ++v)
        store(out + v * kLanes,
              fma(x, half(load(pairs.of[i - pairs.begin / 2][v]), isOdd), load(out + v * kLanes)));
    }
}

template <int R, int V>
void pairValueRows(const float *weights, const int32_t *low, const int32_t *high, const ValuePairs &pairs,
                   int64_t width, float *out) {
  int64_t from = pairs.begin, to = pairs.end;
  for (int r = 0; r < R; ++r) {
    from = low[r] > from ? low[r] : from;
    to = high[r] < to ? high[r] : to;
  }
  // What all see, in whole pairs; the rest is each row's own.
  from = (from + 1) / 2 * 2;
  to = to / 2 * 2;
  if (from >= to)
    from = to = pairs.end; // all of it is edge
  auto clamp = [](int64_t v, int64_t least, int64_t most) { return v < least ? least : v > most ? most : v; };
  for (int r = 0; r < R; ++r)
    valueEdge<V>(weights + r * kKeyBlock, pairs, clamp(low[r], pairs.begin, from),
                 clamp(high[r], pairs.begin, from), out + r * width);
  if (from < to)
    pairValueTile<R, V>(weights, pairs, from, to, width, out);
  for (int r = 0; r < R; ++r)
    valueEdge<V>(weights + r * kKeyBlock, pairs, clamp(low[r], to, pairs.end), clamp(high[r], to, pairs.end),
                 out + r * width);
}

template <int R, int V>
void pairValueRest(const float *weights, const int32_t *low, const int32_t *high, int64_t rows,
                   const ValuePairs &pairs, int64_t width, float *out) {
  if constexpr (R > 0) {
    if (rows != R)
      return pairValueRest<R - 1, V>(weights, low, high, rows, pairs, width, out);
    pairValueRows<R, V>(weights, low, high, pairs, width, out);
  }
}

/// V vectors of columns from `column` on, then fewer.
template <int V>
void pairColumns(const float *weights, const int32_t *low, const int32_t *high, int64_t rows,
                 const void *const *values, int64_t begin, int64_t end, int64_t column, int64_t width,
                 float *out) {
  ValuePairs pairs;
  for (; column + V * kLanes <= width; column += V * kLanes)
    for (int64_t at = begin; at < end; at += kValueKeys) {
      pairs.begin = at;
      pairs.end = at + kValueKeys < end ? at + kValueKeys : end;
      packValues<V>(values + (at - begin), column, pairs);
      for (int64_t r = 0; r < rows; r += kTileRows)
        pairValueRest<kTileRows, V>(weights + r * kKeyBlock, low + r, high + r,
                                    rows - r < kTileRows ? rows - r : kTileRows, pairs, width,
                                    out + r * width + column);
    }
  if constexpr (V > 1)
    pairColumns<V / 2>(weights, low, high, rows, values, begin, end, column, width, out);
}

void pairValues(const float *weights, const int32_t *low, const int32_t *high, int64_t rows,
                const void *const *values, int64_t begin, int64_t end, bool, int64_t width, float *out) {
  DSPARK_EXPECTS(begin % 2 == 0 && width % kLanes == 0);
  pairColumns<kValueVectors>(weights, low, high, rows, values, begin, end, 0, width, out);
}

} // namespace
} // namespace dspark
