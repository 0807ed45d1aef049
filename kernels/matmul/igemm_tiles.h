// The loops of igemm.h with tiles, which are products of 16 rows by 16 columns by 64 terms: a panel's quads
// are rows of B's tiles as they lie. Two blocks of rows by two panels make four sums; rows that fill no block
// are left to VNNI (igemm_quads.h), whose sums are the same, both being exact.
//
// Included behind the tile functions and what igemm_quads.h asks for.
#pragma once
#include "kernels/common/tiles.h"
#include "kernels/matmul/igemm_quads.h"

namespace dspark {
namespace {

/// 16 rows of A and one panel's quads, up to 64 terms of each: in place, or a copy that is filled up with
/// zeros where the last terms fill no tile.
struct TileTerms {
  const std::byte *a[2], *b[2];
  int64_t aStride;
};

// R blocks of rows by P panels: the sum of block r and panel p is tile 2 r + p.
template <int R, int P> inline void addTerms(const TileTerms &terms) {
  loadTile<6>(terms.b[0], kTileBytes);
  loadTile<4>(terms.a[0], terms.aStride);
  dotUnsignedSigned<0, 4, 6>();
  if constexpr (P == 2) {
    loadTile<7>(terms.b[1], kTileBytes);
    dotUnsignedSigned<1, 4, 7>();
  }
  if constexpr (R == 2) {
    loadTile<5>(terms.a[1], terms.aStride);
    dotUnsignedSigned<2, 5, 6>();
    if constexpr (P == 2)
      dotUnsignedSigned<3, 5, 7>();
  }
}

// The terms after the last whole 64, `quads` of them; `from` points at them.
template <int R, int P> void addLastTerms(const TileTerms &from, int64_t quads) {
  alignas(64) std::byte a[R][kTileRows][kTileBytes] = {}, b[P][kTileRows][kTileBytes] = {};
  TileTerms terms = {{}, {}, kTileBytes};
  for (int r = 0; r < R; ++r) {
    for (int64_t row = 0; row < kTileRows; ++row)
      __builtin_memcpy(a[r][row], from.a[r] + row * from.aStride, size_t(quads * 4));
    terms.a[r] = a[r][0];
  }
  for (int p = 0; p < P; ++p) {
    __builtin_memcpy(b[p], from.b[p], size_t(quads * kTileBytes));
    terms.b[p] = b[p][0];
  }
  addTerms<R, P>(terms);
}

// Stores a block's sums and takes off what the rows' zero points add to them.
template <int Sum> void storeSums(const IgemmTile &tile, int64_t row, int64_t panel) {
  int32_t *c = tile.c + (panel * tile.rows + row) * kIntegerColumns;
  storeTile<Sum>(c, kIntegerColumns * 4);
  QuadSums columns = loadQuads(tile.b + panel * packedPanelBytes(tile.k) + panelBytes(tile.k));
  for (int r = 0; r < kTileRows; ++r, c += kIntegerColumns)
    storeQuads(c, takeOff(loadQuads(c), columns, tile.aZero[row + r]));
}

template <int R, int P> void tileBlock(const IgemmTile &tile, int64_t row, int64_t panel) {
  int64_t stride = (tile.k + 3) / 4 * 4, panelStep = packedPanelBytes(tile.k);
  TileTerms terms = {{}, {}, stride};
  for (int r = 0; r < R; ++r)
    terms.a[r] = tile.a + (row + r * kTileRows) * stride;
  for (int p = 0; p < P; ++p)
    terms.b[p] = tile.b + (panel + p) * panelStep;
  zeroTile<0>();
  zeroTile<1>();
  zeroTile<2>();
  zeroTile<3>();
  int64_t left = stride;
  for (; left >= kTileBytes; left -= kTileBytes) {
    addTerms<R, P>(terms);
    for (int r = 0; r < R; ++r)
      terms.a[r] += kTileBytes;
    for (int p = 0; p < P; ++p)
      terms.b[p] += kTileRows * kTileBytes;
  }
  if (left > 0)
    addLastTerms<R, P>(terms, left / 4);
  storeSums<0>(tile, row, panel);
  if constexpr (P == 2)
    storeSums<1>(tile, row, panel + 1);
  if constexpr (R == 2) {
    storeSums<2>(tile, row + kTileRows, panel);
    if constexpr (P == 2)
      storeSums<3>(tile, row + kTileRows, panel + 1);
  }
}

template <int P> void tilePanels(const IgemmTile &tile, int64_t panel) {
  int64_t row = 0;
  for (; row + 2 * kTileRows <= tile.rows; row += 2 * kTileRows)
    tileBlock<2, P>(tile, row, panel);
  if (row + kTileRows <= tile.rows) {
    tileBlock<1, P>(tile, row, panel);
    row += kTileRows;
  }
  quadPanels<P>(tile, panel, row);
}

void integerTiles(const IgemmTile &tile) {
  int64_t panel = 0;
  for (; panel + 2 <= tile.panels; panel += 2)
    tilePanels<2>(tile, panel);
  if (panel < tile.panels)
    tilePanels<1>(tile, panel);
}

} // namespace
} // namespace dspark
