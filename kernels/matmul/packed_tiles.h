// The tiles of packed.h with AMX. Included once, behind the tile functions.
//
// Weights in bf16 are rows of B's tiles as they lie: a step of 32 terms is one tile. Rows of f32 come split
// into three bf16 (bf16_parts.h), rows that were bf16 are one, and no product is left out, so the result is
// as exact as f32's own. Every row count takes this way, one row too (three products of 16 cycles for 1 KiB
// of weights are faster than memory), in one order: each part has a sum of its own over all terms, and they
// are added up from the smallest.
//
// Few bits: a step's integer sums are the same whoever makes them, so blocks of 16 rows take tiles (of half
// depth, since a step has 32 terms) and rows left over take VNNI. The scaling of sums is that of
// packed_int8.h.
#pragma once
#include "kernels/common/tiles.h"
#include "kernels/matmul/packed_loops.h"
#include "kernels/matmul/packed_split.h"

namespace dspark {
namespace {

// --- weights in bf16 ---

// R blocks of 16 rows, each with Parts sums: part p of block r is summed in tile 3 r + p.
template <int R, int Parts>
void halfBlocks(const PackedTile &tile, const uint8_t *panel, int64_t row, float *sums) {
  constexpr int kA = 7, kB = 6;
  const SplitRows &split = tile.split;
  const uint16_t *a = split.parts + row * split.rowElements;
  int64_t stride = split.rowElements * 2, perPart = SplitRows::partElements(tile.k);
  zeroTile<0>();
  zeroTile<1>();
  zeroTile<2>();
  zeroTile<3>();
  zeroTile<4>();
  zeroTile<5>();
  for (int64_t k = 0; k < tile.k; k += kStepTerms, panel += kTileRows * kTileBytes) {
    loadTile<kB>(panel, kTileBytes);
    unroll<R * Parts>([&](auto i) __attribute__((always_inline)) {
      constexpr int r = i / Parts, p = i % Parts;
      loadTile<kA>(a + r * kTileRows * split.rowElements + p * perPart + k, stride);
      dotBf16<kParts * r + p, kA, kB>();
    });
  }
  unroll<R>([&](auto r) __attribute__((always_inline)) {
    alignas(64) float part[kTileRows * kPackedColumns];
    float *out = sums + (row + r * kTileRows) * kPackedColumns;
    storeTile<kParts * r + Parts - 1>(out, kTileBytes);
    unroll<Parts - 1>([&](auto left) __attribute__((always_inline)) {
      storeTile<kParts * r + Parts - 2 - left>(part, kTileBytes);
      for (int64_t at = 0; at < kTileRows * kPackedColumns; at += kLanes)
        store(out + at, load(out + at) + load(part + at));
    });
  });
}

template <int Parts> void halfPanel(const PackedTile &tile, const uint8_t *panel, float *sums) {
  int64_t row = 0;
  for (; row + kTileRows < tile.rows; row += 2 * kTileRows)
    halfBlocks<2, Parts>(tile, panel, row, sums);
  if (row < tile.rows)
    halfBlocks<1, Parts>(tile, panel, row, sums);
}

// --- weights of few bits ---

// The sums of 16 rows over one chunk: integers of all steps first, then row by row what packed_int8.h does.
template <ZeroKind Z> void chunkOfBlock(const QuantizedChunk &chunk, int64_t row, float *sums) {
  alignas(64) int32_t whole[kChunkSteps][kTileRows * kPackedColumns];
  const Chunk &weights = chunk.weights;
  int64_t rowBytes = chunk.rows.rowBytes();
  const uint8_t *records = chunk.rows.records + row * rowBytes;
  constexpr int64_t kRecord = kStepTerms + kRowNumberBytes;
  for (int s = 0; s < weights.steps; ++s) {
    loadTile<6>(weights.lines[s], kTileBytes);
    loadTile<4>(records + s * kRecord, rowBytes);
    zeroTile<0>();
    dotSignedUnsigned<0, 4, 6>();
    storeTile<0>(whole[s], kTileBytes);
  }
  sums += row * kPackedColumns;
  for (int r = 0; r < kTileRows; ++r, records += rowBytes, sums += kPackedColumns)
    for (int64_t at = 0; at < kPackedColumns; at += kLanes) {
      vf sum = load(sums + at);
      for (int s = 0; s < weights.steps; ++s) {
        auto *numbers = reinterpret_cast<const float *>(records + s * kRecord + kStepTerms);
        vf by = splat(numbers[0]), codes = splat(numbers[1]), zero = load(weights.zero[s] + at);
        vi integer = *reinterpret_cast<const vwords *>(whole[s] + r * kPackedColumns + at);
        if constexpr (isStarted(Z))
          integer += bits(codes);
        vf exact = floats(integer);
        if constexpr (Z == ZeroKind::Byte)
          exact = fma(zero, codes, exact);
        sum = fma(exact, load(weights.scale[s] + at) * by, sum);
        if constexpr (Z == ZeroKind::Offset)
          sum = fma(zero, codes, sum);
      }
      store(sums + at, sum);
    }
}

// A step that has two scales is two sums, which half a tile's terms would not pay for.
bool takesTiles(const PackedTile &tile) {
  return tile.isInt8 && tile.rows >= kTileRows && tile.format.scalesPerStep() == 1 &&
         tile.quantized.codeBytes == kStepTerms;
}

void codesPanel(const PackedTile &tile, const uint8_t *panel, float *sums) {
  __builtin_memset(sums, 0, size_t(tile.rows * kPackedColumns) * sizeof(float));
  int64_t blocks = tile.rows / kTileRows, left = tile.rows % kTileRows;
  const RowTable &table = rowTableOf(tile.format);
  auto *block = table.zero == ZeroKind::Offset ? chunkOfBlock<ZeroKind::Offset>
                : table.zero == ZeroKind::Byte ? chunkOfBlock<ZeroKind::Byte>
                                               : chunkOfBlock<ZeroKind::Constant>;
  Unpack unpack = tile.format.code == CodeKind::U8 ? nullptr : unpacker(tile.format.code);
  float *codes = tile.scratch + 2 * kPackedRows * kPackedColumns;
  uint8_t *bytes = reinterpret_cast<uint8_t *>(codes);
  ChunkReader reader(tile, panel, codes + kChunkTerms * kPackedColumns);
  QuantizedChunk chunk = {{}, tile.quantized};
  while (reader.next(chunk.weights)) {
    for (int s = 0; unpack && s < chunk.weights.steps; ++s) {
      unpack(chunk.weights.lines[s], bytes + s * 512);
      chunk.weights.lines[s] = bytes + s * 512;
    }
    for (int64_t b = 0; b < blocks; ++b)
      block(chunk, b * kTileRows, sums);
    evenBlocks(0, left, table.count, [&](int64_t rows, int64_t row) {
      table.rows[rows - 1](chunk, blocks * kTileRows + row, sums);
    });
    chunk.rows.records += chunk.weights.steps * (chunk.rows.codeBytes + kRowNumberBytes);
  }
}

// --- the choice ---

void tilePanelSums(const PackedTile &tile, int64_t panel, float *sums) {
  const uint8_t *bytes = tile.panels + panel * tile.panelBytes;
  if (tile.split.count == kParts)
    halfPanel<kParts>(tile, bytes, sums);
  else if (tile.split.count == 1)
    halfPanel<1>(tile, bytes, sums);
  else if (takesTiles(tile))
    codesPanel(tile, bytes, sums);
  else
    panelSums(tile, panel, sums);
}

} // namespace
} // namespace dspark
