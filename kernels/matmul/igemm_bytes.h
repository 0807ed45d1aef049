// The loops of igemm.h for AVX2 where weights are small: rows of A are unsigned bytes (signed ones have 128
// added), and four terms are multiplied with a panel's bytes at a time, without loss.
//
// vpmaddubsw adds two products of u8 x s8 in 16 bits, which no bytes of A can overflow where the positive and
// the negative weights of the pair each sum to at most 128 (255 * 128 < 2^15). Eight columns' quads of terms,
// one vector, are therefore sorted, for every block of terms and anew in each run: multiplied as bytes where
// all their pairs are so small; with the quad's terms in another order where that makes them so; and else
// widened to 16 bits. Multiplied as bytes, a quad takes two multiplications and an addition where words take
// two and two. Sorting and the other orders cost what that saves unless nearly all quads are of the first
// kind, as 7-bit weights' are (hasSmallPairs).
//
// What a zero point adds to the sums is taken off at the end, by the sums of the panel's columns. A register
// tile is R rows by half a panel; with more than six rows clang, which loads all rows' terms first, spills.
#pragma once
#include "kernels/matmul/igemm_byte_rows.h"
#include "kernels/matmul/igemm_pack.h"
#include "kernels/matmul/igemm_sums.h"

namespace dspark {
namespace {

using Ints = __m256i;
constexpr int64_t kQuadBytes = 4 * kIntegerColumns, kHalf = kIntegerColumns / 2;
constexpr int64_t kBlockQuads = kIntegerBlock / 4;
inline Ints loadInts(const void *p) { return _mm256_loadu_si256(static_cast<const __m256i *>(p)); }
inline void storeInts(void *p, Ints v) { _mm256_storeu_si256(static_cast<__m256i *>(p), v); }

// The two further ways to pair four terms: 0 with 2 and 1 with 3, 0 with 3 and 1 with 2.
alignas(32) constexpr int8_t kOrders[2][32] = {{0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15,
                                                0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15},
                                               {0, 3, 1, 2, 4, 7, 5, 6, 8, 11, 9, 10, 12, 15, 13, 14,
                                                0, 3, 1, 2, 4, 7, 5, 6, 8, 11, 9, 10, 12, 15, 13, 14}};

// Of half a panel's quads, where they begin (in terms) and, of those of another order, which.
struct SortedQuads {
  int64_t plain = 0, ordered = 0, wide = 0;
  int32_t plainAt[kBlockQuads], orderedAt[kBlockQuads], wideAt[kBlockQuads];
  const int8_t *order[kBlockQuads];
};

// Whether no pair's positive weights sum to more than 128, or its negative ones to less than -127: -128 is
// counted as -127, which is what its negation saturates to.
inline bool arePairsSmall(Ints w) {
  Ints zero = _mm256_setzero_si256(), one = _mm256_set1_epi8(1);
  Ints positive = _mm256_maddubs_epi16(_mm256_max_epi8(w, zero), one);
  Ints negative = _mm256_maddubs_epi16(_mm256_max_epi8(_mm256_subs_epi8(zero, w), zero), one);
  Ints large = _mm256_or_si256(_mm256_cmpgt_epi16(positive, _mm256_set1_epi16(128)),
                               _mm256_cmpgt_epi16(negative, _mm256_set1_epi16(127)));
  return _mm256_testz_si256(large, large) != 0;
}

void sortQuads(const int8_t *b, int64_t quads, SortedQuads &sorted) {
  sorted.plain = sorted.ordered = sorted.wide = 0;
  for (int64_t q = 0; q < quads; ++q, b += kQuadBytes) {
    Ints w = loadInts(b);
    if (arePairsSmall(w)) {
      sorted.plainAt[sorted.plain++] = int32_t(q * 4);
      continue;
    }
    const int8_t *order = nullptr;
    for (const auto &other : kOrders)
      if (!order && arePairsSmall(_mm256_shuffle_epi8(w, loadInts(other))))
        order = other;
    if (order) {
      sorted.order[sorted.ordered] = order;
      sorted.orderedAt[sorted.ordered++] = int32_t(q * 4);
    } else {
      sorted.wideAt[sorted.wide++] = int32_t(q * 4);
    }
  }
}

// A look at the first quads.
bool hasSmallPairs(const std::byte *panel, int64_t k) {
  const auto *b = reinterpret_cast<const int8_t *>(panel);
  int64_t quads = k / 4 < 64 ? k / 4 : 64, small = 0;
  for (int64_t q = 0; q < quads; ++q)
    small += arePairsSmall(loadInts(b + q * kQuadBytes)) + arePairsSmall(loadInts(b + q * kQuadBytes + 32));
  return small * 20 >= 2 * quads * 19;
}

inline Ints splatQuad(const std::byte *a) {
  int32_t terms;
  __builtin_memcpy(&terms, a, sizeof(terms));
  return _mm256_set1_epi32(terms);
}
inline Ints addBytes(Ints sum, Ints a, Ints w) {
  return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(a, w), _mm256_set1_epi16(1)));
}
inline Ints addWords(Ints sum, Ints a, Ints w) { return _mm256_add_epi32(sum, _mm256_madd_epi16(a, w)); }

// R rows of `stride` bytes at `a` times half a panel's quads at `b`, all at the block's first term. Added to
// c [rows][16] unless `isFirst`.
template <int R>
void sumRows(const std::byte *a, int64_t stride, const int8_t *b, const SortedQuads &sorted, bool isFirst,
             int32_t *c) {
  Ints sum[R];
#pragma clang loop unroll(full)
  for (int r = 0; r < R; ++r)
    sum[r] = isFirst ? Ints{} : loadInts(c + r * kIntegerColumns);
#pragma clang loop unroll(disable)
  for (int64_t i = 0; i < sorted.plain; ++i) {
    int64_t term = sorted.plainAt[i];
    Ints w = loadInts(b + term * kIntegerColumns);
#pragma clang loop unroll(full)
    for (int r = 0; r < R; ++r)
      sum[r] = addBytes(sum[r], splatQuad(a + r * stride + term), w);
  }
#pragma clang loop unroll(disable)
  for (int64_t i = 0; i < sorted.ordered; ++i) {
    int64_t term = sorted.orderedAt[i];
    Ints order = loadInts(sorted.order[i]),
         w = _mm256_shuffle_epi8(loadInts(b + term * kIntegerColumns), order);
#pragma clang loop unroll(full)
    for (int r = 0; r < R; ++r)
      sum[r] = addBytes(sum[r], _mm256_shuffle_epi8(splatQuad(a + r * stride + term), order), w);
  }
#pragma clang loop unroll(disable)
  for (int64_t i = 0; i < sorted.wide; ++i) {
    int64_t term = sorted.wideAt[i];
    Ints w = loadInts(b + term * kIntegerColumns), odd = _mm256_srai_epi16(w, 8),
         even = _mm256_srai_epi16(_mm256_slli_epi16(w, 8), 8);
#pragma clang loop unroll(full)
    for (int r = 0; r < R; ++r) {
      Ints terms = splatQuad(a + r * stride + term);
      sum[r] = addWords(sum[r], _mm256_and_si256(terms, _mm256_set1_epi16(255)), even);
      sum[r] = addWords(sum[r], _mm256_srli_epi16(terms, 8), odd);
    }
  }
#pragma clang loop unroll(full)
  for (int r = 0; r < R; ++r)
    storeInts(c + r * kIntegerColumns, sum[r]);
}

void sumPanel(const IgemmTile &tile, const int8_t *b, int32_t *c) {
  int64_t stride = (tile.k + 3) / 4 * 4;
  SortedQuads sorted;
  // An empty sum is still written.
  for (int64_t k = 0; k == 0 || k < tile.k; k += kIntegerBlock) {
    int64_t quads = ((tile.k - k < kIntegerBlock ? tile.k - k : kIntegerBlock) + 3) / 4;
    for (int64_t half = 0; half < 2; ++half) {
      const int8_t *bytes = b + k * kIntegerColumns + half * kQuadBytes / 2;
      const std::byte *a = tile.a + k;
      int32_t *to = c + half * kHalf;
      sortQuads(bytes, quads, sorted);
      int64_t row = 0;
      auto rows = [&]<int R>() {
        for (; row + R <= tile.rows; row += R)
          sumRows<R>(a + row * stride, stride, bytes, sorted, k == 0, to + row * kIntegerColumns);
      };
      rows.template operator()<6>();
      rows.template operator()<3>();
      rows.template operator()<1>();
    }
  }
}

// Takes a zero point times the columns' sums off.
inline void takeOff(int32_t *sums, const int32_t *columns, int32_t zero) {
  for (int64_t half = 0; half < 2; ++half) {
    Ints off = _mm256_mullo_epi32(loadInts(columns + half * kHalf), _mm256_set1_epi32(zero));
    storeInts(sums + half * kHalf, _mm256_sub_epi32(loadInts(sums + half * kHalf), off));
  }
}

void bytesTile(const IgemmTile &tile) {
  expectTile(tile);
  bool haveOneZero = tile.results != nullptr;
  for (int64_t r = 1; r < tile.rows; ++r)
    haveOneZero &= tile.aZero[r] == tile.aZero[0];
  for (int64_t p = 0; p < tile.panels; ++p) {
    const auto *b = reinterpret_cast<const int8_t *>(tile.b + p * packedPanelBytes(tile.k));
    int32_t *c = tile.c + p * tile.rows * kIntegerColumns, columns[kIntegerColumns];
    __builtin_memcpy(columns, b + panelBytes(tile.k), sizeof(columns));
    sumPanel(tile, b, c);
    // One zero point joins the bias.
    if (haveOneZero && tile.rows > 0) {
      int32_t bias[kIntegerColumns];
      __builtin_memcpy(bias, tile.results[p].bias, sizeof(bias));
      takeOff(bias, columns, tile.aZero[0]);
      SumsResult result = tile.results[p];
      result.bias = bias;
      finishSums(c, result);
      continue;
    }
    for (int64_t r = 0; r < tile.rows; ++r)
      takeOff(c + r * kIntegerColumns, columns, tile.aZero[r]);
    if (tile.results)
      finishSums(c, tile.results[p]);
  }
}

} // namespace
} // namespace dspark
