// The three inner loops of attention, written on vector extensions: baseline, AVX2 and AVX-512 sources
// include this file and export one AttentionCore each. Bound: multiply-adds for many queries, K and V
// bandwidth for one.
//
//   scores   S[r][j] = q[r] . k[j]     kRows queries share each load of a key
//   softmax  one row, in place; a row of -inf becomes zeros
//   values   o[r] = sum_j P[r][j] v[j] kRows outputs share each load of a value row
//
// Sums run over d, then over j in order, eight lanes wide whatever the level, so that results do not depend
// on threads, tiles or batch. The levels differ only by FMA contraction.
#pragma once
#include <cstdint>

namespace dspark {

inline constexpr int kAttentionRows = 4;
inline constexpr int kAttentionLanes = 8;

/// Rows of keys or values: the first `pastCount` from the cache, the others from the new tokens. Strides in
/// elements.
template <typename A> struct AttentionRows {
  const A *past, *fresh;
  int64_t pastCount, pastStride, freshStride;
};

/// q is [rows][size] and out is [rows][width]; scores are [rows][stride]. rows <= kAttentionRows; keys
/// [begin, end).
template <typename A> struct AttentionCore {
  void (*scores)(const A *q, int rows, int64_t size, const AttentionRows<A> &keys, int64_t begin, int64_t end,
                 A *scores, int64_t stride);
  void (*softmax)(A *row, int64_t count);
  void (*values)(const A *probabilities, int rows, int64_t stride, const AttentionRows<A> &values,
                 int64_t begin, int64_t end, int64_t width, A *out);
};

extern const AttentionCore<float> kAttentionCoreF32;
extern const AttentionCore<double> kAttentionCoreF64;
extern const AttentionCore<float> kAttentionCoreF32Avx2;
extern const AttentionCore<float> kAttentionCoreF32Avx512;

} // namespace dspark
