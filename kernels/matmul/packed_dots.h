// The tiles of packed.h with vdpbf16ps: weights in bf16 times rows in bf16, two terms at a time added to f32.
//
// A register tile is up to 8 rows by two panels (16 sums, the panels' vectors and broadcasts from memory). A
// row's terms are added up in pairs in one order, whatever rows and panels are computed beside it; the
// instruction rounds as two multiply-adds do, and takes numbers below 2^-126 for zero.
#pragma once
#include "kernels/common/contract.h"
#include "kernels/matmul/even_rows.h"
#include "kernels/matmul/packed_finish.h"

namespace dspark {
namespace {

constexpr int kDotRows = 8; // with 11 and 12 their addresses leave the registers (20 % slower)
constexpr int64_t kPairBytes = 4 * kPackedColumns; // of a panel

// Sums of R rows by P panels that lie panelBytes apart; those of panel p go to sums[p].
template <int R, int P>
void dotRows(const PackedTile &tile, const uint8_t *panel, int64_t row, float *const (&sums)[P]) {
  const char *a[R];
  unroll<R>(DSPARK_LAMBDA {
    a[i] = reinterpret_cast<const char *>(tile.split.parts + (row + i) * tile.split.rowElements);
  });
  __m512 sum[R][P];
  unroll<R * P>(DSPARK_LAMBDA { sum[i / P][i % P] = _mm512_setzero_ps(); });
  const int64_t pairs = (tile.k + 1) / 2;
#pragma clang loop unroll_count(4)
  for (int64_t k = 0; k < pairs; ++k, panel += kPairBytes) {
    __m512bh w[P];
    unroll<P>(DSPARK_LAMBDA { w[i] = (__m512bh)_mm512_loadu_si512(panel + i * tile.panelBytes); });
    unroll<R>([&](auto r) __attribute__((always_inline)) {
      int32_t pair;
      __builtin_memcpy(&pair, a[r] + 4 * k, sizeof(pair));
      __m512bh x = (__m512bh)_mm512_set1_epi32(pair);
      unroll<P>(DSPARK_LAMBDA { sum[r][i] = _mm512_dpbf16_ps(sum[r][i], w[i], x); });
    });
  }
  unroll<R * P>(
      DSPARK_LAMBDA { _mm512_storeu_ps(sums[i % P] + (row + i / P) * kPackedColumns, sum[i / P][i % P]); });
}

template <int P>
using DotRows = void (*)(const PackedTile &, const uint8_t *panel, int64_t row, float *const (&sums)[P]);

template <int P> void dotPanels(const PackedTile &tile, int64_t panel, float *const (&sums)[P]) {
  static constexpr auto kTable = rowTable<DotRows<P>, kDotRows>([]<int R> { return &dotRows<R, P>; });
  evenBlocks(0, tile.rows, kDotRows, [&](int64_t rows, int64_t row) {
    kTable[rows](tile, tile.panels + panel * tile.panelBytes, row, sums);
  });
}

// Two panels at a time: two of the result's, or a gate's and what it opens.
void dotTile(const PackedTile &tile) {
  DSPARK_EXPECTS(tile.rows >= 0 && tile.rows <= kPackedRows && tile.k >= 0 && tile.scratch);
  DSPARK_EXPECTS(tile.split.count == 1);
  float *first = tile.scratch, *second = first + kPackedRows * kPackedColumns;
  const int64_t perPair = tile.isGated ? kPackedColumns : 2 * kPackedColumns;
  for (int64_t column = 0, panel = 0; column < tile.columns; column += perPair, panel += 2) {
    const bool isPair = tile.isGated || column + kPackedColumns < tile.columns;
    if (isPair)
      dotPanels<2>(tile, panel, {first, second});
    else
      dotPanels<1>(tile, panel, {first});
    if (tile.isGated) {
      finishPanel(tile, column, second, first);
      continue;
    }
    finishPanel(tile, column, first, nullptr);
    if (isPair)
      finishPanel(tile, column + kPackedColumns, second, nullptr);
  }
}

// One row to the nearest bf16, ties to even, filled up with zeros to whole steps.
void roundRow(const float *row, int64_t k, const SplitRows &out) {
  DSPARK_EXPECTS(out.count == 1);
  auto sixteen = [&](int64_t at) __attribute__((always_inline)) {
    int64_t left = k - at;
    return __m512(left >= kLanes ? load(row + at) : loadLanes(row + at, left > 0 ? left : 0));
  };
  for (int64_t at = 0; at < SplitRows::partElements(k); at += kStepTerms)
    _mm512_storeu_si512(out.parts + at, (__m512i)_mm512_cvtne2ps_pbh(sixteen(at + kLanes), sixteen(at)));
}

} // namespace
} // namespace dspark
