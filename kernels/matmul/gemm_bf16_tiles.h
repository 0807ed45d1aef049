// The product of gemm_bf16.h with AMX. Included behind the tile functions.
//
//   for each block of K (256 pairs of terms, taps one after the other)
//     for each two panels, for each 32 rows: 4 sums in tiles, a product each per step of 16 pairs
//
// Panels are rows of B's tiles as they lie, and so are 16 rows of A whose distances are equal; what is not is
// copied: A's rows where a line of the image ends, steps that reach from one tap into the next. Sums rest in
// C between blocks, and their order depends on nothing but the number of terms.
#pragma once
#include "kernels/matmul/terms_bf16.h"

#include "kernels/matmul/gemm_tile_sums.h"

namespace dspark {
namespace {

constexpr int64_t kStepPairs = kTileBytes / 4, kBlockSteps = kGemmPartTerms / kStepPairs;
constexpr int64_t kTilePairs = kTileRows * kStepPairs;
constexpr int64_t kRowBlocks = kMaxTileRows / kTileRows;
static_assert((kRowBlocks + 2) * kBlockSteps * kTilePairs * 2 <= kGemmPartElements); // two bf16 a pair

// Where a tile lies, and how far apart its rows are.
struct TilePlace {
  const float *at;
  int64_t stride; // bytes
};

// The tiles of one block of K.
struct BlockTiles {
  TilePlace rows[kRowBlocks][kBlockSteps], panels[2][kBlockSteps];
};

// The distance of 16 rows in bytes, or 0 where they are not equally far apart or fewer.
inline int64_t distanceOf(const GemmTile &tile, int64_t tap, int64_t row) {
  if (row + kTileRows > tile.rows)
    return 0;
  const float *const *a = tile.a + tap * tile.aStride + row;
  intptr_t distance = intptr_t(a[1]) - intptr_t(a[0]);
  for (int64_t i = 2; i < kTileRows; ++i)
    if (intptr_t(a[i]) - intptr_t(a[i - 1]) != distance)
      return 0;
  return distance;
}

void placeRows(const GemmTile &tile, const TermBlock &block, int64_t rowBlock, float *copies,
               TilePlace *places) {
  int64_t row = rowBlock * kTileRows, rows = tile.rows - row < kTileRows ? tile.rows - row : kTileRows;
  int64_t tapOfDistance = -1, distance = 0;
  bool isCopied = false;
  for (int64_t step = 0; step < block.steps(kStepPairs); ++step) {
    int64_t first = block.first + step * kStepPairs, tap = first / tile.depth, at = first % tile.depth;
    if (tap != tapOfDistance) {
      distance = distanceOf(tile, tap, row);
      tapOfDistance = tap;
    }
    bool isWhole = at + kStepPairs <= tile.depth && (step + 1) * kStepPairs <= block.terms;
    float *copy = copies + (rowBlock * kBlockSteps + step) * kTilePairs;
    isCopied |= !(isWhole && distance != 0);
    places[step] = isWhole && distance != 0 ? TilePlace{tile.a[tap * tile.aStride + row] + at, distance}
                                            : TilePlace{copy, kTileBytes};
  }
  if (!isCopied)
    return;
  float line[kGemmPartTerms];
  for (int64_t r = 0; r < kTileRows; ++r) {
    int64_t terms = r < rows ? block.terms : 0;
    if (r < rows)
      gatherTerms(tile, block, row + r, line);
    __builtin_memset(line + terms, 0, size_t(kGemmPartTerms - terms) * sizeof(float));
    for (int64_t step = 0; step < block.steps(kStepPairs); ++step) {
      float *copy = copies + (rowBlock * kBlockSteps + step) * kTilePairs;
      if (places[step].at == copy)
        __builtin_memcpy(copy + r * kStepPairs, line + step * kStepPairs, kTileBytes);
    }
  }
}

void placePanel(const float *panel, const TermBlock &block, float *copies, TilePlace *places) {
  for (int64_t step = 0; step < block.steps(kStepPairs); ++step) {
    int64_t first = step * kStepPairs, last = first + kStepPairs - 1;
    const float *at = panel + block.panelAt[first];
    if (last < block.terms && block.panelAt[last] - block.panelAt[first] == (kStepPairs - 1) * kPanel) {
      places[step] = {at, kTileBytes};
      continue;
    }
    float *copy = copies + step * kTilePairs;
    for (int64_t i = first; i <= last; ++i, copy += kPanel)
      if (i < block.terms)
        __builtin_memcpy(copy, panel + block.panelAt[i], kTileBytes);
      else
        __builtin_memset(copy, 0, kTileBytes);
    places[step] = {copies + step * kTilePairs, kTileBytes};
  }
}

template <int R, int P>
void multiplyBlock(const GemmTile &tile, const TermBlock &block, const BlockTiles &tiles, int64_t rowBlock,
                   int64_t panel) {
  SumTiles sums;
  startSums<R, P>(tile, block, rowBlock, panel, sums);
  for (int64_t step = 0; step < block.steps(kStepPairs); ++step) {
    const TilePlace *rows = &tiles.rows[rowBlock][step];
    loadTile<4>(rows->at, rows->stride);
    if constexpr (R == 2)
      loadTile<5>(rows[kBlockSteps].at, rows[kBlockSteps].stride);
    loadTile<6>(tiles.panels[0][step].at, tiles.panels[0][step].stride);
    if constexpr (P == 2)
      loadTile<7>(tiles.panels[1][step].at, tiles.panels[1][step].stride);
    multiplyTiles<R, P>();
  }
  finishSums<R, P>(tile, block, rowBlock, panel, sums);
}

template <int P>
void multiplyPanels(const GemmTile &tile, const TermBlock &block, const BlockTiles &tiles, int64_t panel) {
  int64_t blocks = (tile.rows + kTileRows - 1) / kTileRows, at = 0;
  for (; at + 2 <= blocks; at += 2)
    multiplyBlock<2, P>(tile, block, tiles, at, panel);
  if (at < blocks)
    multiplyBlock<1, P>(tile, block, tiles, at, panel);
}

void bf16Block(const GemmTile &tile, const TermBlock &block) {
  BlockTiles tiles;
  float *copies = reinterpret_cast<float *>(tile.parts);
  for (int64_t rowBlock = 0; rowBlock * kTileRows < tile.rows; ++rowBlock)
    placeRows(tile, block, rowBlock, copies, tiles.rows[rowBlock]);
  copies += kRowBlocks * kBlockSteps * kTilePairs;
  int64_t panels = (tile.columns + kPanel - 1) / kPanel;
  for (int64_t panel = 0; panel < panels; panel += 2) {
    int64_t count = panels - panel < 2 ? 1 : 2;
    for (int64_t p = 0; p < count; ++p)
      placePanel(tile.b + (panel + p) * tile.panelStride, block, copies + p * kBlockSteps * kTilePairs,
                 tiles.panels[p]);
    count == 2 ? multiplyPanels<2>(tile, block, tiles, panel) : multiplyPanels<1>(tile, block, tiles, panel);
  }
}

void gemmBf16Tiles(const GemmTile &tile) {
  DSPARK_EXPECTS(tile.parts && tile.rows <= kMaxTileRows && tile.aStride >= tile.rows);
  if (tile.taps * tile.depth == 0)
    return gemmTile(tile);
  if (tile.rows <= 0 || tile.columns <= 0)
    return;
  TermBlock block;
  for (int64_t first = 0; first < tile.taps * tile.depth; first += kGemmPartTerms) {
    findTerms(tile, first, block);
    bf16Block(tile, block);
  }
}

} // namespace
} // namespace dspark
