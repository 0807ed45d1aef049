// The product of gemm.h with AMX, as exact as f32: both operands as three bf16 parts each, of whose nine
// products the six largest are taken (bf16_parts.h). Included behind the tile functions.
//
//   for each block of K (256 terms, taps one after the other)
//     split the rows of A        [16 rows][8 steps][3 parts] tiles, at most 288 KiB: L2
//     for each two panels
//       split the panels         48 KiB: L1
//       for each 32 rows: 4 sums in tiles, 6 products each per step of 32 terms
//
// Sums rest in C between blocks. Their order depends on nothing but the number of terms: per step
// low high, middle high, middle middle, high middle, high low, high high, which needs 14 loads for 24
// products. Beside the 2^-23 that left-out products may weigh, a result has at most 17 + 6 K/32 roundings,
// fewer than the K of one multiply-add after the other from 24 terms on; numbers below 2^-126 count as zero.
//
// Infinity times a part that is zero would be NaN, so rows and panels that hold infinities or NaN are
// computed again by multiply-adds: a fact of the row, or of the panel, alone.
#pragma once
#include "kernels/common/tiles.h"
#include "kernels/matmul/bf16_parts.h"
#include "kernels/matmul/terms_f32.h"

#include "kernels/matmul/gemm_loops.h"

namespace dspark {
namespace {

constexpr int64_t kStep = 32, kBlockSteps = kGemmPartTerms / kStep;
constexpr int64_t kTileElements = kTileRows * kStep; // of bf16
enum Part { kHigh, kMiddle, kLow };

// Where a block of K stands in the sum, and where its terms lie.
struct TermBlock {
  int64_t first, terms;
  bool isFirst, isLast;
  int64_t panelAt[kGemmPartTerms]; // floats from a panel's begin to each term's 16 columns

  int64_t steps() const { return (terms + kStep - 1) / kStep; }
};

// Tiles of parts: [blocks of 16 rows or panels][kBlockSteps][kParts].
inline uint16_t *tileAt(uint16_t *parts, int64_t block, int64_t step, int part) {
  return parts + ((block * kBlockSteps + step) * kParts + part) * kTileElements;
}

typedef uint16_t vhalf __attribute__((ext_vector_type(kLanes), aligned(1)));

// One row of A, filled up with zeros to whole steps; false if it holds an infinity or NaN.
bool splitTerms(const GemmTile &tile, const TermBlock &block, int64_t row, uint16_t *parts) {
  float line[kGemmPartTerms];
  for (int64_t done = 0; done < block.terms;) {
    int64_t tap = (block.first + done) / tile.depth, at = (block.first + done) % tile.depth;
    int64_t count = tile.depth - at < block.terms - done ? tile.depth - at : block.terms - done;
    __builtin_memcpy(line + done, tile.a[tap * tile.aStride + row] + at, size_t(count) * sizeof(float));
    done += count;
  }
  for (int64_t i = block.terms; i < block.steps() * kStep; ++i)
    line[i] = 0;
  vi most = vi(0);
  for (int64_t i = 0; i < block.steps() * kStep; i += kLanes) {
    vf x = load(line + i);
    vi magnitude = bits(x) & 0x7fffffff;
    most = magnitude > most ? magnitude : most;
    Bf16Parts split = partsOf(x);
    const vi all[kParts] = {split.high, split.middle, split.low};
    for (int p = 0; p < kParts; ++p) {
      uint16_t *to = tileAt(parts, row / kTileRows, i / kStep, p) + row % kTileRows * kStep + i % kStep;
      *reinterpret_cast<vhalf *>(to) = __builtin_convertvector(all[p] >> 16, vhalf);
    }
  }
  return __builtin_reduce_max(most) < kInfinityBits;
}

// One panel: pairs of terms side by side for each column. The same promise.
bool splitPanel(const float *panel, const TermBlock &block, int64_t at, uint16_t *parts) {
  vi most = vi(0);
  for (int64_t pair = 0; pair < block.steps() * kStep / 2; ++pair)
    for (int64_t column = 0; column < kPanel; column += kLanes) {
      vf even = 2 * pair < block.terms ? load(panel + block.panelAt[2 * pair] + column) : splat(0);
      vf odd = 2 * pair + 1 < block.terms ? load(panel + block.panelAt[2 * pair + 1] + column) : splat(0);
      vi larger = (bits(even) & 0x7fffffff) > (bits(odd) & 0x7fffffff) ? bits(even) : bits(odd);
      larger &= 0x7fffffff;
      most = larger > most ? larger : most;
      Bf16Parts first = partsOf(even), second = partsOf(odd);
      const vi low[kParts] = {first.high, first.middle, first.low};
      const vi high[kParts] = {second.high, second.middle, second.low};
      for (int p = 0; p < kParts; ++p) {
        uint16_t *to = tileAt(parts, at, pair / kTileRows, p) + (pair % kTileRows * kPanel + column) * 2;
        store(reinterpret_cast<float *>(to), fromBits(((low[p] >> 16) & 0xffff) | high[p]));
      }
    }
  return __builtin_reduce_max(most) < kInfinityBits;
}

// A's parts are in tiles 4 and 5, B's in 6 and 7; the sum of block r and panel p is tile 2 r + p.
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
template <int R> inline void loadRowTiles(uint16_t *parts, int64_t block, int64_t step, Part part) {
  loadTile<4>(tileAt(parts, block, step, part), kTileBytes);
  if constexpr (R == 2)
    loadTile<5>(tileAt(parts, block + 1, step, part), kTileBytes);
}
template <int P> inline void loadPanelTiles(uint16_t *parts, int64_t step, Part part) {
  loadTile<6>(tileAt(parts, 0, step, part), kTileBytes);
  if constexpr (P == 2)
    loadTile<7>(tileAt(parts, 1, step, part), kTileBytes);
}

template <int R, int P> void multiplyStep(uint16_t *a, uint16_t *b, int64_t block, int64_t step) {
  loadRowTiles<R>(a, block, step, kLow);
  loadPanelTiles<P>(b, step, kHigh);
  multiplyTiles<R, P>();
  loadRowTiles<R>(a, block, step, kMiddle);
  multiplyTiles<R, P>();
  loadPanelTiles<P>(b, step, kMiddle);
  multiplyTiles<R, P>();
  loadRowTiles<R>(a, block, step, kHigh);
  multiplyTiles<R, P>();
  loadPanelTiles<P>(b, step, kLow);
  multiplyTiles<R, P>();
  loadPanelTiles<P>(b, step, kHigh);
  multiplyTiles<R, P>();
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
void readSums(const GemmTile &tile, int64_t row, int64_t column, float *sums) {
  __builtin_memset(sums, 0, kTileRows * kPanel * sizeof(float));
  eachVector(tile, row, column, sums, [&](int64_t r, int64_t c, int64_t lanes, float *to) {
    store(to, loadLanes(tile.c[r] + c, lanes));
  });
}
void writeSums(const GemmTile &tile, bool isLast, int64_t row, int64_t column, float *sums) {
  eachVector(tile, row, column, sums, [&](int64_t r, int64_t c, int64_t lanes, float *from) {
    if (!isLast)
      return storeLanes(tile.c[r] + c, load(from), lanes);
    finishEdge(from, 1, 1, tile, true, r, c);
  });
}

template <int R, int P>
void multiplyBlock(const GemmTile &tile, const TermBlock &block, int64_t rowBlock, int64_t panel,
                   uint16_t *b) {
  SumTiles sums;
  int64_t row = rowBlock * kTileRows, column = panel * kPanel;
  zeroTile<0>();
  zeroTile<1>();
  zeroTile<2>();
  zeroTile<3>();
  if (!block.isFirst) {
    for (int r = 0; r < R; ++r)
      for (int p = 0; p < P; ++p)
        readSums(tile, row + r * kTileRows, column + p * kPanel, sums.of[2 * r + p][0]);
    loadTile<0>(sums.of[0], kTileBytes);
    if constexpr (P == 2)
      loadTile<1>(sums.of[1], kTileBytes);
    if constexpr (R == 2)
      loadTile<2>(sums.of[2], kTileBytes);
    if constexpr (R == 2 && P == 2)
      loadTile<3>(sums.of[3], kTileBytes);
  }
  for (int64_t step = 0; step < block.steps(); ++step)
    multiplyStep<R, P>(tile.parts, b, rowBlock, step);
  storeTile<0>(sums.of[0], kTileBytes);
  storeTile<1>(sums.of[1], kTileBytes);
  storeTile<2>(sums.of[2], kTileBytes);
  storeTile<3>(sums.of[3], kTileBytes);
  for (int r = 0; r < R; ++r)
    for (int p = 0; p < P; ++p)
      writeSums(tile, block.isLast, row + r * kTileRows, column + p * kPanel, sums.of[2 * r + p][0]);
}

template <int P>
void multiplyPanels(const GemmTile &tile, const TermBlock &block, int64_t panel, uint16_t *b) {
  int64_t blocks = (tile.rows + kTileRows - 1) / kTileRows, at = 0;
  for (; at + 2 <= blocks; at += 2)
    multiplyBlock<2, P>(tile, block, at, panel, b);
  if (at < blocks)
    multiplyBlock<1, P>(tile, block, at, panel, b);
}

// Part of a tile by multiply-adds: rows [row, row + rows) of columns [column, column + columns).
void multiplyAgain(const GemmTile &tile, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  float *c[kMaxTileRows];
  for (int64_t r = 0; r < rows; ++r)
    c[r] = tile.c[row + r] + column;
  GemmTile part = tile;
  part.a = tile.a + row;
  part.c = c;
  part.rows = rows;
  part.b = tile.b + column / kPanel * tile.panelStride;
  part.columns = columns;
  part.scale = tile.scale ? tile.scale + column : nullptr;
  part.bias = tile.bias ? tile.bias + column : nullptr;
  part.residual = tile.residual ? tile.residual + (c[0] - tile.c[0]) : nullptr;
  part.copy = nullptr;
  gemmTile(part);
}

// Which rows and panels hold infinities or NaN; panels beyond the last flag count with it.
struct Special {
  static constexpr int64_t kPanels = 1024;
  bool row[kMaxTileRows] = {}, panel[kPanels] = {};
  bool isAny = false;

  static int64_t panelFlag(int64_t panel) { return panel < kPanels ? panel : kPanels - 1; }
  void note(bool &flag, bool isFinite) {
    flag |= !isFinite;
    isAny |= !isFinite;
  }
};

void findTerms(const GemmTile &tile, int64_t first, TermBlock &block) {
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

void blockOfParts(const GemmTile &tile, const TermBlock &block, Special &special) {
  for (int64_t row = 0; row < tile.rows; ++row)
    special.note(special.row[row], splitTerms(tile, block, row, tile.parts));
  int64_t panels = (tile.columns + kPanel - 1) / kPanel;
  uint16_t *b = tileAt(tile.parts, kMaxTileRows / kTileRows, 0, 0);
  for (int64_t panel = 0; panel < panels; panel += 2) {
    int64_t count = panels - panel < 2 ? 1 : 2;
    for (int64_t p = 0; p < count; ++p)
      special.note(special.panel[Special::panelFlag(panel + p)],
                   splitPanel(tile.b + (panel + p) * tile.panelStride, block, p, b));
    count == 2 ? multiplyPanels<2>(tile, block, panel, b) : multiplyPanels<1>(tile, block, panel, b);
  }
}

void repeatSpecial(const GemmTile &tile, const Special &special) {
  for (int64_t column = 0; column < tile.columns; column += kPanel)
    if (special.panel[Special::panelFlag(column / kPanel)])
      multiplyAgain(tile, 0, tile.rows, column,
                    tile.columns - column < kPanel ? tile.columns - column : kPanel);
  for (int64_t row = 0; row < tile.rows; ++row)
    if (special.row[row])
      multiplyAgain(tile, row, 1, 0, tile.columns);
}

void gemmTiles(const GemmTile &tile) {
  if (!tile.parts || tile.taps * tile.depth == 0)
    return gemmTile(tile);
  if (tile.rows <= 0 || tile.columns <= 0)
    return;
  Special special;
  TermBlock block;
  for (int64_t first = 0; first < tile.taps * tile.depth; first += kGemmPartTerms) {
    findTerms(tile, first, block);
    blockOfParts(tile, block, special);
  }
  if (special.isAny)
    repeatSpecial(tile, special);
}

} // namespace
} // namespace dspark
