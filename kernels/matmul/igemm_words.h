// Products of 16-bit words in pairs, included once per ISA level: rows of A and panels [pairs][16][2] of B to
// 32-bit sums. A register tile is R rows by one panel.
#pragma once
#include "kernels/matmul/even_rows.h"
#include "kernels/matmul/igemm_sums.h"

namespace dspark {
namespace {

#if defined(__AVX512F__)
using Ints = __m512i;
constexpr int kIntLanes = 16, kIntRows = 16;
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
constexpr int kIntVectors = int(kIntegerColumns) / kIntLanes;
static_assert(kIntVectors == kSumVectors);

// Where one panel's sums over terms [0, k) go; they are added to what is there unless `isFirst`.
struct Block {
  const int16_t *a; // of the tile's first row, at the block's first term
  int64_t stride;   // elements between rows
  int64_t k;
  int32_t *c; // [rows][16]
  bool isFirst;
  const SumsResult *result; // of all 16 columns, what the sums become instead; or null
};

// What becomes of a register tile.
struct ToSums {
  static constexpr bool isSums = true, isFloat = false;
};
struct ToBytes {
  static constexpr bool isSums = false, isFloat = false;
};
struct ToFloats {
  static constexpr bool isSums = false, isFloat = true;
};

template <int R, typename To> void pairRows(const Block &block, int64_t row, const int16_t *b) {
  Ints sum[R][kIntVectors];
  int32_t *c = block.c + row * kIntegerColumns;
#pragma clang loop unroll(full)
  for (int r = 0; r < R; ++r)
#pragma clang loop unroll(full)
    for (int v = 0; v < kIntVectors; ++v)
      sum[r][v] = block.isFirst ? Ints{} : loadInts(c + r * kIntegerColumns + v * kIntLanes);
  const int16_t *a = block.a + row * block.stride;
  int64_t pairs = (block.k + 1) / 2;
#pragma clang loop unroll(disable)
  for (int64_t p = 0; p < pairs; ++p, b += 2 * kIntegerColumns) {
    Ints column[kIntVectors];
#pragma clang loop unroll(full)
    for (int v = 0; v < kIntVectors; ++v)
      column[v] = loadInts(b + v * 2 * kIntLanes);
#pragma clang loop unroll(full)
    for (int r = 0; r < R; ++r) {
      int32_t pair;
      __builtin_memcpy(&pair, a + r * block.stride + 2 * p, sizeof(pair));
#pragma clang loop unroll(full)
      for (int v = 0; v < kIntVectors; ++v)
        sum[r][v] = addPairs(sum[r][v], splatPair(pair), column[v]);
    }
  }
  if constexpr (To::isSums) {
#pragma clang loop unroll(full)
    for (int r = 0; r < R; ++r)
#pragma clang loop unroll(full)
      for (int v = 0; v < kIntVectors; ++v)
        storeInts(c + r * kIntegerColumns + v * kIntLanes, sum[r][v]);
    return;
  }
  ResultRows rows(*block.result);
#pragma clang loop unroll(full)
  for (int r = 0; r < R; ++r) {
    SumRow sums;
#pragma clang loop unroll(full)
    for (int v = 0; v < kIntVectors; ++v)
      sums[v] = simd::vi(sum[r][v]);
    if constexpr (To::isFloat)
      rows.toFloats(sums, row + r);
    else
      rows.toBytes(sums, row + r);
  }
}

template <typename To> void wordRowsTo(const Block &block, int64_t rows, const int16_t *b) {
#if defined(__AVX512F__)
  using Rows = void (*)(const Block &, int64_t, const int16_t *);
  static constexpr auto kRows = rowTable<Rows, kIntRows>([]<int R>() -> Rows { return pairRows<R, To>; });
  evenBlocks(0, rows, kIntRows, [&](int64_t size, int64_t row) { kRows[size](block, row, b); });
#else
  int64_t row = 0;
  for (; row + kIntRows <= rows; row += kIntRows)
    pairRows<kIntRows, To>(block, row, b);
  if constexpr (kIntRows > 4)
    for (; row + 4 <= rows; row += 4)
      pairRows<4, To>(block, row, b);
  for (; row + 2 <= rows; row += 2)
    pairRows<2, To>(block, row, b);
  if (row < rows)
    pairRows<1, To>(block, row, b);
#endif
}
[[maybe_unused]] inline void wordRows(const Block &block, int64_t rows, const int16_t *b) {
  if (!block.result)
    wordRowsTo<ToSums>(block, rows, b);
  else if (block.result->floats)
    wordRowsTo<ToFloats>(block, rows, b);
  else
    wordRowsTo<ToBytes>(block, rows, b);
}

// [quads][16][4] bytes to [pairs][16][2] words.
void widenPanel(const int8_t *b, int64_t quads, int16_t *out) {
#if defined(__AVX2__)
  // Bytes 0 and 1 (then 2 and 3) of each column to the upper halves of its 16-bit lanes, then shifted down.
  const __m256i first = _mm256_setr_epi8(-1, 0, -1, 1, -1, 4, -1, 5, -1, 8, -1, 9, -1, 12, -1, 13, -1, 0, -1,
                                         1, -1, 4, -1, 5, -1, 8, -1, 9, -1, 12, -1, 13);
  const __m256i second = _mm256_setr_epi8(-1, 2, -1, 3, -1, 6, -1, 7, -1, 10, -1, 11, -1, 14, -1, 15, -1, 2,
                                          -1, 3, -1, 6, -1, 7, -1, 10, -1, 11, -1, 14, -1, 15);
  for (int64_t q = 0; q < quads; ++q, b += 64, out += 64)
    for (int half = 0; half < 2; ++half) {
      __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(b + half * 32));
      auto *to = reinterpret_cast<__m256i *>(out + half * 16);
      _mm256_storeu_si256(to, _mm256_srai_epi16(_mm256_shuffle_epi8(bytes, first), 8));
      _mm256_storeu_si256(to + 2, _mm256_srai_epi16(_mm256_shuffle_epi8(bytes, second), 8));
    }
#else
  for (int64_t q = 0; q < quads; ++q, b += 64, out += 64)
    for (int64_t j = 0; j < kIntegerColumns; ++j)
      for (int64_t i = 0; i < 4; ++i)
        out[i / 2 * 32 + j * 2 + i % 2] = b[j * 4 + i];
#endif
}

} // namespace
} // namespace dspark
