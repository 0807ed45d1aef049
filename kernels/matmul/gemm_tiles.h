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
#include "kernels/matmul/bf16_parts.h"
#include "kernels/matmul/terms_f32.h"

#include "kernels/matmul/gemm_tile_sums.h"

namespace dspark {
namespace {

constexpr int64_t kStep = 32, kBlockSteps = kGemmPartTerms / kStep;
constexpr int64_t kTileElements = kTileRows * kStep; // of bf16
enum Part { kHigh, kMiddle, kLow };

// Tiles of parts: [blocks of 16 rows or panels][kBlockSteps][kParts].
inline uint16_t *tileAt(uint16_t *parts, int64_t block, int64_t step, int part) {
  return parts + ((block * kBlockSteps + step) * kParts + part) * kTileElements;
}

typedef uint16_t vhalf __attribute__((ext_vector_type(kLanes), aligned(1)));

// One row of A, filled up with zeros to whole steps; false if it holds an infinity or NaN.
bool splitTerms(const GemmTile &tile, const TermBlock &block, int64_t row, uint16_t *parts) {
  float line[kGemmPartTerms];
  gatherTerms(tile, block, row, line);
  for (int64_t i = block.terms; i < block.steps(kStep) * kStep; ++i)
    line[i] = 0;
  vi most = vi(0);
  for (int64_t i = 0; i < block.steps(kStep) * kStep; i += kLanes) {
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
  for (int64_t pair = 0; pair < block.steps(kStep) * kStep / 2; ++pair)
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

template <int R, int P>
void multiplyBlock(const GemmTile &tile, const TermBlock &block, int64_t rowBlock, int64_t panel,
                   uint16_t *b) {
  SumTiles sums;
  startSums<R, P>(tile, block, rowBlock, panel, sums);
  for (int64_t step = 0; step < block.steps(kStep); ++step)
    multiplyStep<R, P>(tile.parts, b, rowBlock, step);
  finishSums<R, P>(tile, block, rowBlock, panel, sums);
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
