// The loops of igemm.h, included once per ISA level. A register tile is R rows by one panel of 16 columns.
#pragma once
#include "kernels/matmul/igemm.h"
#include <immintrin.h>

namespace dspark {
namespace {

#if defined(__AVX512F__)
using Ints = __m512i;
constexpr int kIntLanes = 16, kIntRows = 12;
inline Ints loadInts(const void *p) { return _mm512_loadu_si512(p); }
inline void storeInts(void *p, Ints v) { _mm512_storeu_si512(p, v); }
inline Ints splatPair(int32_t v) { return _mm512_set1_epi32(v); }
inline Ints addPairs(Ints sum, Ints a, Ints b) { return _mm512_dpwssd_epi32(sum, a, b); }
#elif defined(__AVX2__)
using Ints = __m256i;
constexpr int kIntLanes = 8, kIntRows = 6;
inline Ints loadInts(const void *p) { return _mm256_loadu_si256(static_cast<const __m256i *>(p)); }
inline void storeInts(void *p, Ints v) { _mm256_storeu_si256(static_cast<__m256i *>(p), v); }
inline Ints splatPair(int32_t v) { return _mm256_set1_epi32(v); }
inline Ints addPairs(Ints sum, Ints a, Ints b) { return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b)); }
#else
using Ints = __m128i;
constexpr int kIntLanes = 4, kIntRows = 2;
inline Ints loadInts(const void *p) { return _mm_loadu_si128(static_cast<const __m128i *>(p)); }
inline void storeInts(void *p, Ints v) { _mm_storeu_si128(static_cast<__m128i *>(p), v); }
inline Ints splatPair(int32_t v) { return _mm_set1_epi32(v); }
inline Ints addPairs(Ints sum, Ints a, Ints b) { return _mm_add_epi32(sum, _mm_madd_epi16(a, b)); }
#endif
constexpr int kIntVectors = 16 / kIntLanes;

template <int R> void integerRows(const IgemmTile &tile, int64_t row) {
  Ints sum[R][kIntVectors] = {};
  const int16_t *a[R];
  for (int r = 0; r < R; ++r)
    a[r] = tile.a + (row + r) * tile.pairs * 2;
  const int16_t *b = tile.b;
  for (int64_t p = 0; p < tile.pairs; ++p, b += 32) {
    Ints column[kIntVectors];
#pragma clang loop unroll(full)
    for (int v = 0; v < kIntVectors; ++v)
      column[v] = loadInts(b + v * 2 * kIntLanes);
#pragma clang loop unroll(full)
    for (int r = 0; r < R; ++r) {
      int32_t pair;
      __builtin_memcpy(&pair, a[r] + 2 * p, sizeof(pair));
#pragma clang loop unroll(full)
      for (int v = 0; v < kIntVectors; ++v)
        sum[r][v] = addPairs(sum[r][v], splatPair(pair), column[v]);
    }
  }
#pragma clang loop unroll(full)
  for (int r = 0; r < R; ++r)
#pragma clang loop unroll(full)
    for (int v = 0; v < kIntVectors; ++v)
      storeInts(tile.c + (row + r) * 16 + v * kIntLanes, sum[r][v]);
}

void integerTile(const IgemmTile &tile) {
  int64_t row = 0;
  for (; row + kIntRows <= tile.rows; row += kIntRows)
    integerRows<kIntRows>(tile, row);
  for (; row + 2 <= tile.rows; row += 2)
    integerRows<2>(tile, row);
  if (row < tile.rows)
    integerRows<1>(tile, row);
}

template <typename T>
void packInts(const T *b, int64_t k, int64_t columns, int64_t kStride, int64_t nStride, const int16_t *zero,
              int16_t *panel) {
  if (columns < 16 || k % 2 != 0)
    __builtin_memset(panel, 0, size_t((k + 1) / 2 * 32) * sizeof(int16_t));
  if (nStride == 1 && columns == 16) {
    for (int64_t i = 0; i < k; ++i)
      for (int64_t j = 0; j < 16; ++j)
        panel[i / 2 * 32 + j * 2 + i % 2] = int16_t(b[i * kStride + j] - zero[j]);
    return;
  }
  for (int64_t j = 0; j < columns; ++j)
    for (int64_t i = 0; i < k; ++i)
      panel[i / 2 * 32 + j * 2 + i % 2] = int16_t(b[i * kStride + j * nStride] - zero[j]);
}
void packAny(const void *b, bool isSigned, int64_t k, int64_t columns, int64_t kStride, int64_t nStride,
             const int16_t *zero, int16_t *panel) {
  if (isSigned)
    packInts(static_cast<const int8_t *>(b), k, columns, kStride, nStride, zero, panel);
  else
    packInts(static_cast<const uint8_t *>(b), k, columns, kStride, nStride, zero, panel);
}

// Terms beyond k would become -zero here; A's are 0 there, so they do not count.
template <typename T> void unpackQuads(const T *b, int64_t k, const int16_t *zero, int16_t *panel) {
  for (int64_t p = 0; p < (k + 1) / 2; ++p)
    for (int64_t j = 0; j < 16; ++j)
      for (int64_t i = 0; i < 2; ++i)
        panel[p * 32 + j * 2 + i] = int16_t(b[p / 2 * 64 + j * 4 + p % 2 * 2 + i] - zero[j]);
}
void unpackAny(const void *b, bool isSigned, int64_t k, const int16_t *zero, int16_t *panel) {
  if (isSigned)
    unpackQuads(static_cast<const int8_t *>(b), k, zero, panel);
  else
    unpackQuads(static_cast<const uint8_t *>(b), k, zero, panel);
}

template <typename T> void widenRow(const T *a, int64_t count, int64_t step, int16_t zero, int16_t *out) {
  if (step == 1)
    for (int64_t i = 0; i < count; ++i)
      out[i] = int16_t(a[i] - zero);
  else
    for (int64_t i = 0; i < count; ++i)
      out[i] = int16_t(a[i * step] - zero);
  if (count % 2 != 0)
    out[count] = 0;
}
void rowAny(const void *a, bool isSigned, int64_t count, int64_t step, int16_t zero, int16_t *out) {
  if (isSigned)
    widenRow(static_cast<const int8_t *>(a), count, step, zero, out);
  else
    widenRow(static_cast<const uint8_t *>(a), count, step, zero, out);
}

} // namespace
} // namespace dspark
