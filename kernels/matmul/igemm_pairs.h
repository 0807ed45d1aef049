// The loops of igemm.h for levels without VNNI: rows of A are 16-bit values less their zero point, the panel
// is widened block by block, and terms are multiplied in pairs.
#pragma once
#include "kernels/matmul/igemm_pack.h"
#include "kernels/matmul/igemm_words.h"

namespace dspark {
namespace {

#if defined(__AVX2__)
// Few rows read the bytes of the panel themselves, since making its 16-bit form would take longer than using
// it: 4 columns by 4 terms a vector, whose pairs of lanes are added in the end.
constexpr int64_t kDirectRows = 8;
template <int R> void directRows(const Block &block, int64_t row, const int8_t *b) {
  // Several rows take half a panel at a time, whose sums and columns fit the registers.
  constexpr int V = R == 1 ? 4 : 2;
  const int16_t *a = block.a + row * block.stride;
  for (int first = 0; first < 4; first += V) {
    Ints sum[R][V] = {};
    const int8_t *from = b + first * 16;
#pragma clang loop unroll(disable)
    for (int64_t q = 0; q < block.k; q += 4, from += 64) {
      Ints column[V];
#pragma clang loop unroll(full)
      for (int v = 0; v < V; ++v)
        column[v] = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i *>(from + 16 * v)));
#pragma clang loop unroll(full)
      for (int r = 0; r < R; ++r) {
        int64_t terms;
        __builtin_memcpy(&terms, a + r * block.stride + q, sizeof(terms));
#pragma clang loop unroll(full)
        for (int v = 0; v < V; ++v)
          sum[r][v] = addPairs(sum[r][v], _mm256_set1_epi64x(terms), column[v]);
      }
    }
#pragma clang loop unroll(full)
    for (int r = 0; r < R; ++r)
#pragma clang loop unroll(full)
      for (int v = 0; v < V; v += 2) {
        int32_t *c = block.c + (row + r) * kIntegerColumns + 4 * (first + v);
        Ints pairs = _mm256_permute4x64_epi64(_mm256_hadd_epi32(sum[r][v], sum[r][v + 1]), 0xd8);
        storeInts(c, block.isFirst ? pairs : _mm256_add_epi32(pairs, loadInts(c)));
      }
  }
}
void directPanel(const Block &block, int64_t rows, const int8_t *b) {
  int64_t row = 0;
  for (; row + 4 <= rows; row += 4)
    directRows<4>(block, row, b);
  for (; row + 2 <= rows; row += 2)
    directRows<2>(block, row, b);
  if (row < rows)
    directRows<1>(block, row, b);
}
#else
constexpr int64_t kDirectRows = 0;
void directPanel(const Block &, int64_t, const int8_t *) {}
#endif

void integerPanel(const IgemmTile &tile, const int8_t *b, int32_t *c, const SumsResult *result) {
  int64_t stride = (tile.k + 3) / 4 * 4;
  auto *wide = reinterpret_cast<int16_t *>(tile.scratch);
  bool isDirect = tile.rows <= kDirectRows;
  bool isFused = result && !isDirect && result->columns == kIntegerColumns;
  // An empty sum is still written.
  for (int64_t k = 0; k == 0 || k < tile.k; k += kIntegerBlock) {
    int64_t terms = tile.k - k < kIntegerBlock ? tile.k - k : kIntegerBlock;
    bool isLast = k + kIntegerBlock >= tile.k;
    Block block = {reinterpret_cast<const int16_t *>(tile.a) + k, stride, terms, c, k == 0,
                   isLast && isFused ? result : nullptr};
    const int8_t *bytes = b + k * kIntegerColumns;
    if (isDirect) {
      directPanel(block, tile.rows, bytes);
      continue;
    }
    widenPanel(bytes, (block.k + 3) / 4, wide);
    wordRows(block, tile.rows, wide);
  }
  if (result && !isFused)
    finishSums(c, *result);
}

void integerTile(const IgemmTile &tile) {
  expectTile(tile);
  for (int64_t p = 0; p < tile.panels; ++p)
    integerPanel(tile, reinterpret_cast<const int8_t *>(tile.b + p * packedPanelBytes(tile.k)),
                 tile.c + p * tile.rows * kIntegerColumns, tile.results ? tile.results + p : nullptr);
}

template <typename T> void widenRow(const T *a, int64_t count, int64_t step, int16_t zero, int16_t *out) {
#if defined(__AVX2__)
  // Short runs are what convolutions have: the last vector overlaps the one before it.
  if (step == 1 && count >= 16) {
    Ints zeros = _mm256_set1_epi16(zero);
    for (int64_t i = 0; i < count; i += 16) {
      int64_t at = i + 16 <= count ? i : count - 16;
      __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i *>(a + at));
      Ints words = T(-1) < T(0) ? _mm256_cvtepi8_epi16(bytes) : _mm256_cvtepu8_epi16(bytes);
      storeInts(out + at, _mm256_sub_epi16(words, zeros));
    }
    return;
  }
  if (step == 1 && count >= 8) {
    for (int64_t at : {int64_t(0), count - 8}) {
      __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i *>(a + at));
      __m128i words = T(-1) < T(0) ? _mm_cvtepi8_epi16(bytes) : _mm_cvtepu8_epi16(bytes);
      _mm_storeu_si128(reinterpret_cast<__m128i *>(out + at), _mm_sub_epi16(words, _mm_set1_epi16(zero)));
    }
    return;
  }
#endif
  if (step == 1)
    for (int64_t i = 0; i < count; ++i)
      out[i] = int16_t(a[i] - zero);
  else
    for (int64_t i = 0; i < count; ++i)
      out[i] = int16_t(a[i * step] - zero);
}
void rowAny(const void *a, bool isSigned, int64_t count, int64_t step, int16_t zero, std::byte *out) {
  auto *to = reinterpret_cast<int16_t *>(out);
  if (isSigned)
    widenRow(static_cast<const int8_t *>(a), count, step, zero, to);
  else
    widenRow(static_cast<const uint8_t *>(a), count, step, zero, to);
}
void fillRow(bool, int64_t count, int16_t, std::byte *out) {
  __builtin_memset(out, 0, size_t(count) * sizeof(int16_t));
}

int32_t rowSum(const std::byte *row, int64_t k, int16_t) {
  const auto *a = reinterpret_cast<const int16_t *>(row);
  uint32_t sum = 0;
  for (int64_t i = 0; i < k; ++i)
    sum += uint32_t(a[i]);
  return int32_t(sum);
}

} // namespace
} // namespace dspark
