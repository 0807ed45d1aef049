// What products by tiles share (gemm_tiles.h, gemm_bf16_tiles.h): blocks of the sum, four sums in tiles and
// their way to C. Included behind the tile functions and a kind of terms (gemm_loops.h).
#pragma once
#include "kernels/common/tiles.h"
#include "kernels/matmul/gemm_loops.h"

namespace dspark {
namespace {

// Where a block of K stands in the sum, and where its terms lie.
struct TermBlock {
  int64_t first, terms;
  bool isFirst, isLast;
  int64_t panelAt[kGemmPartTerms]; // floats from a panel's begin to each term's 16 columns

  /// Steps of `perStep` terms, the last one filled up.
  int64_t steps(int64_t perStep) const { return (terms + perStep - 1) / perStep; }
};

inline void findTerms(const GemmTile &tile, int64_t first, TermBlock &block) {
  int64_t all = tile.taps * tile.depth;
  block.first = first;
  block.terms = all - first < kGemmPartTerms ? all - first : kGemmPartTerms;
  block.isFirst = first == 0;
  block.isLast = first + block.terms == all;
  for (int64_t i = 0; i < block.terms; ++i) {
    int64_t tap = (first + i) / tile.depth, at = (first + i) % tile.depth;
    block.panelAt[i] = (tile.tapOffset ? tile.tapOffset[tap] : tap * tile.depth * kPanel) + at * kPanel;
  }
}

// The block's terms of one row of A, side by side.
inline void gatherTerms(const GemmTile &tile, const TermBlock &block, int64_t row, float *line) {
  for (int64_t done = 0; done < block.terms;) {
    int64_t tap = (block.first + done) / tile.depth, at = (block.first + done) % tile.depth;
    int64_t count = tile.depth - at < block.terms - done ? tile.depth - at : block.terms - done;
    __builtin_memcpy(line + done, tile.a[tap * tile.aStride + row] + at, size_t(count) * sizeof(float));
    done += count;
  }
}

// A is in tiles 4 and 5, B in 6 and 7; the sum of block r and panel p is tile 2 r + p.
template <int R, int P> inline void multiplyTiles() {
  dotBf16<0, 4, 6>();
  if constexpr (P == 2)
    dotBf16<1, 4, 7>();
  if constexpr (R == 2) {
    dotBf16<2, 5, 6>();
    if constexpr (P == 2)
      dotBf16<3, 5, 7>();
  }
}
// Sums of four tiles between C and memory that tiles can take.
struct SumTiles {
  alignas(64) float of[4][kTileRows][kPanel];
};

// f(row, column, lanes, place of the sums) for every vector of the result that 16 rows and a panel hold.
template <typename F>
inline void eachVector(const GemmTile &tile, int64_t row, int64_t column, float *sums, F f) {
  int64_t rows = tile.rows - row < kTileRows ? tile.rows - row : kTileRows;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t at = 0; at < kPanel; at += kLanes)
      if (int64_t lanes = lanesOf(tile.columns - column - at, 0); lanes > 0)
        f(row + r, column + at, lanes, sums + r * kPanel + at);
}
inline void readSums(const GemmTile &tile, int64_t row, int64_t column, float *sums) {
  __builtin_memset(sums, 0, kTileRows * kPanel * sizeof(float));
  eachVector(tile, row, column, sums, [&](int64_t r, int64_t c, int64_t lanes, float *to) {
    store(to, loadLanes(tile.c[r] + c, lanes));
  });
}
inline void writeSums(const GemmTile &tile, bool isLast, int64_t row, int64_t column, float *sums) {
  eachVector(tile, row, column, sums, [&](int64_t r, int64_t c, int64_t lanes, float *from) {
    if (!isLast)
      return storeLanes(tile.c[r] + c, load(from), lanes);
    finishEdge(from, 1, 1, tile, true, r, c);
  });
}

// Zeros, or what blocks of K before this one have left in C, into tiles 0 to 3.
template <int R, int P>
inline void startSums(const GemmTile &tile, const TermBlock &block, int64_t rowBlock, int64_t panel,
                      SumTiles &sums) {
  zeroTile<0>();
  zeroTile<1>();
  zeroTile<2>();
  zeroTile<3>();
  if (block.isFirst)
    return;
  for (int r = 0; r < R; ++r)
    for (int p = 0; p < P; ++p)
      readSums(tile, (rowBlock + r) * kTileRows, (panel + p) * kPanel, sums.of[2 * r + p][0]);
  loadTile<0>(sums.of[0], kTileBytes);
  if constexpr (P == 2)
    loadTile<1>(sums.of[1], kTileBytes);
  if constexpr (R == 2)
    loadTile<2>(sums.of[2], kTileBytes);
  if constexpr (R == 2 && P == 2)
    loadTile<3>(sums.of[3], kTileBytes);
}

// And back, finished where the block is the last.
template <int R, int P>
inline void finishSums(const GemmTile &tile, const TermBlock &block, int64_t rowBlock, int64_t panel,
                       SumTiles &sums) {
  storeTile<0>(sums.of[0], kTileBytes);
  storeTile<1>(sums.of[1], kTileBytes);
  storeTile<2>(sums.of[2], kTileBytes);
  storeTile<3>(sums.of[3], kTileBytes);
  for (int r = 0; r < R; ++r)
    for (int p = 0; p < P; ++p)
      writeSums(tile, block.isLast, (rowBlock + r) * kTileRows, (panel + p) * kPanel, sums.of[2 * r + p][0]);
}

} // namespace
} // namespace dspark
