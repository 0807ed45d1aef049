// The loops of igemm.h with VNNI: rows of A are unsigned bytes (signed ones have 128 added), four terms are
// multiplied with a panel's bytes at a time. What a zero point adds to the sums is taken off at the end, by
// the sums of the panel's columns. A register tile is R rows by P panels.
//
// `dotQuads` is the machine's instruction; the test that includes this file has one in software.
#pragma once
#include "kernels/matmul/even_rows.h"
#include "kernels/matmul/igemm_byte_rows.h"
#include "kernels/matmul/igemm_pack.h"

namespace dspark {
namespace {

// Sums of R rows by P panels, which begin with `start`.
template <int R, int P>
inline __attribute__((always_inline)) void sumQuads(const IgemmTile &tile, int64_t row, int64_t panel,
                                                    const QuadSums (&start)[P], QuadSums (&sum)[R][P]) {
  int64_t stride = (tile.k + 3) / 4 * 4, panelStep = packedPanelBytes(tile.k);
  const std::byte *a = tile.a + row * stride, *b = tile.b + panel * panelStep;
#pragma clang loop unroll(full)
  for (int r = 0; r < R; ++r)
#pragma clang loop unroll(full)
    for (int p = 0; p < P; ++p)
      sum[r][p] = start[p];
  for (int64_t q = 0; q < tile.k; q += 4, b += 64) {
    QuadSums column[P];
#pragma clang loop unroll(full)
    for (int p = 0; p < P; ++p)
      column[p] = loadQuads(b + p * panelStep);
#pragma clang loop unroll(full)
    for (int r = 0; r < R; ++r) {
      int32_t terms;
      __builtin_memcpy(&terms, a + r * stride + q, sizeof(terms));
#pragma clang loop unroll(full)
      for (int p = 0; p < P; ++p)
        sum[r][p] = dotQuads(sum[r][p], splatQuad(terms), column[p]);
    }
  }
}

inline QuadSums panelSums(const IgemmTile &tile, int64_t panel) {
  return loadQuads(tile.b + panel * packedPanelBytes(tile.k) + panelBytes(tile.k));
}

template <int R, int P> void quadRows(const IgemmTile &tile, int64_t row, int64_t panel) {
  QuadSums sum[R][P], start[P] = {};
  sumQuads(tile, row, panel, start, sum);
#pragma clang loop unroll(full)
  for (int p = 0; p < P; ++p) {
    QuadSums columns = panelSums(tile, panel + p);
    int32_t *c = tile.c + ((panel + p) * tile.rows + row) * kIntegerColumns;
#pragma clang loop unroll(full)
    for (int r = 0; r < R; ++r)
      storeQuads(c + r * kIntegerColumns, takeOff(sum[r][p], columns, tile.aZero[row + r]));
  }
}

constexpr int kQuadRows = 12; // whose sums by 2 panels fill the registers

template <int P> void quadPanels(const IgemmTile &tile, int64_t panel, int64_t row = 0) {
  using Rows = void (*)(const IgemmTile &, int64_t, int64_t);
  static constexpr auto kRows = rowTable<Rows, kQuadRows>([]<int R>() -> Rows { return quadRows<R, P>; });
  evenBlocks(row, tile.rows, kQuadRows,
             [&](int64_t size, int64_t first) { kRows[size](tile, first, panel); });
}

[[maybe_unused]] void quadTile(const IgemmTile &tile) {
  int64_t panel = 0;
  for (; panel + 2 <= tile.panels; panel += 2)
    quadPanels<2>(tile, panel);
  if (panel < tile.panels)
    quadPanels<1>(tile, panel);
}

} // namespace
} // namespace dspark
