// One column of packed weights as f32: a row of an embedding table, which is stored once, as the weights of
// the product with its transpose. A column's codes lie 64 bytes apart, so a row costs the reading of its
// whole panel: at 8 bits and 576 terms 9 KiB, about a microsecond a token. Included once per ISA level.
#pragma once
#include "kernels/matmul/packed_codes.h"

namespace dspark {
namespace {

void columnOfFloats(CodeKind kind, const uint8_t *lines, int64_t column, float *out) {
  for (int k = 0; k < kStepTerms; ++k) {
    if (kind == CodeKind::F32) {
      __builtin_memcpy(&out[k], lines + (k * kPackedColumns + column) * 4, sizeof(float));
      continue;
    }
    if (kind == CodeKind::F16) {
      out[k] = f16At(lines + (k * kPackedColumns + column / kLanes * kLanes) * 2)[column % kLanes];
      continue;
    }
    uint16_t bits; // [16][2]
    __builtin_memcpy(&bits, lines + (k / 2 * kPackedColumns + column) * 4 + k % 2 * 2, sizeof(bits));
    out[k] = __builtin_bit_cast(float, uint32_t(bits) << 16);
  }
}

// The same arithmetic as the product's, so that both see the same weights.
void columnOfCodes(const PackedFormat &format, const Chunk &chunk, int step, int64_t column, float *out) {
  bool isOffset = format.zero == ZeroKind::Offset;
  int quadsPerGroup = int(kQuads) / format.scalesPerStep();
  for (int q = 0; q < kQuads; ++q) {
    int64_t at = q / quadsPerGroup * kPackedColumns + column;
    float scale = chunk.scale[step][at], zero = chunk.zero[step][at];
    uint32_t codes = fourCodes(format.code, chunk.lines[step] + column * 4, q);
    for (int j = 0; j < 4; ++j) {
      float code = float(codes >> 8 * j & 255);
      out[q * 4 + j] = isOffset ? code * scale + zero : (code - zero) * scale;
    }
  }
}

void packedColumn(const PackedFormat &format, const uint8_t *panel, int64_t column, int64_t k, float *out) {
  alignas(64) float numbers[kChunkNumbers];
  PackedTile tile = {};
  tile.format = format;
  tile.k = k;
  ChunkReader reader(tile, panel, numbers);
  Chunk chunk;
  while (reader.next(chunk))
    for (int s = 0; s < chunk.steps; ++s, out += kStepTerms, k -= kStepTerms) {
      float weights[kStepTerms];
      if (format.isFloat())
        columnOfFloats(format.code, chunk.lines[s], column, weights);
      else
        columnOfCodes(format, chunk, s, column, weights);
      __builtin_memcpy(out, weights, size_t(k < kStepTerms ? k : kStepTerms) * sizeof(float));
    }
}

} // namespace
} // namespace dspark
