// The product of rows with packed weights (packed_format.h), one panel of 16 columns at a time.
//
//   for each chunk of a panel (16 steps, 512 terms; few rows take it whole, packed_few_rows.h)
//     decode its scales; for many rows also unpack its codes
//     for each group of R rows: integer products of every step, scaled and added to sums [rows][16]
//
// Arithmetics. *int8*: rows are quantised to 8 bits per 32 terms; products of codes are exact integers,
// and per step and group
//
//   sum = fma(float(integer sum - zero * sum of the row's codes), scale * row scale, sum)
//
// (for ZeroKind::Offset: the integer sum alone, then sum = fma(offset, row scale * sum of codes, sum)). With
// AVX-512 the two groups of a step are scaled and added up first, and the row's scale is brought in once.
// *f32*: weights become f32 exactly as their format defines them, and two chains of multiply-adds per chunk
// (terms 0, 2, 4 ... and 1, 3, 5 ...) are added up in that order; at level Amx weights in bf16 take
// tiles (packed_tiles.h).
//
// A third one, *bf16*, is for weights in bf16: rows are rounded to bf16 once and products are exact. It has
// its own instructions where the machine has fast ones (packed_dots.h, packed_tiles.h). All orders depend on
// nothing but K, so a row's result is the same whatever rows are computed beside it and however the work is
// cut (per ISA level).
//
// Plain data only: the files compiled for higher ISA levels include nothing else.
#pragma once
#include "kernels/common/isa.h"
#include "kernels/matmul/activation.h"
#include "kernels/matmul/packed_format.h"

namespace dspark {

inline constexpr int64_t kChunkSteps = 16, kChunkTerms = kChunkSteps * kStepTerms;
inline constexpr int64_t kPackedRows = 128;    // rows of one tile
inline constexpr int64_t kRowNumberBytes = 16; // after a step's codes

/// Rows of A quantised to 8 bits: per row and step of 32 terms a record of
///   codeBytes  codes: [32] bytes, or [32] words in an order of their own (PackedOps::codeBytes)
///   f32        scale, at least amax / 127
///   f32[2]     of each half step (formats with two scales a step) or of the whole one (first entry): the sum
///              of the codes, negated for zero points, times the scale for ZeroKind::Offset and Value;
///              AVX-512 with ZeroKind::Constant: i32[2], that sum times -zeroPoint
///   i16[2]     -16 times the sum of the codes in the first and in the second pair of all quads (AVX2, for
///              codes of 5 bits)
struct QuantizedRows {
  uint8_t *records; // [rows][steps], rows rowBytes() apart
  int64_t steps, codeBytes;

  int64_t rowBytes() const { return rowBytes(steps, codeBytes); }
  /// Rows a multiple of 4 KiB apart would share the sets of the L1 cache.
  static int64_t rowBytes(int64_t steps, int64_t codeBytes) {
    int64_t bytes = steps * (codeBytes + kRowNumberBytes);
    return bytes + (bytes % 1024 == 0 ? 64 : 0);
  }
};

/// Rows of A as sums of bf16 (bf16_parts.h): per row `count` parts of partElements(k), one after the other.
/// Tiles read 16 rows at a time, so that rowsOf(rows) must exist; what is in those beyond does not matter.
struct SplitRows {
  uint16_t *parts; // rows rowElements apart
  int64_t rowElements;
  int count; // 3, 1 where rows are rounded or were bf16 from the start, 0 where rows are not split

  static int64_t partElements(int64_t k) { return (k + kStepTerms - 1) / kStepTerms * kStepTerms; }
  /// As in QuantizedRows, no multiple of 1 KiB.
  static int64_t rowElementsOf(int64_t k, int count) {
    int64_t elements = partElements(k) * count;
    return elements + (elements % 512 == 0 ? kStepTerms : 0);
  }
  static int64_t rowsOf(int64_t rows) { return rows + 15; }
};

struct PackedTile {
  PackedFormat format;
  const uint8_t *panels; // the first panel
  int64_t panelBytes, k, rows, columns;
  bool isInt8;
  QuantizedRows quantized; // from this tile's first row on; with isInt8
  SplitRows split;         // the same
  const float *a;          // otherwise, row-major
  int64_t aRow;

  float *c; // [rows][columns], rows cRow apart
  int64_t cRow;
  const float *bias;     // [columns], or null
  const float *residual; // rows residualRow apart, or null
  int64_t residualRow;
  SumEpilogue epilogue;
  /// Panels come in pairs (gate, up): the result is act(gate) * up, of half as many columns. `columns`, bias
  /// and residual count those of the result.
  bool isGated;
  float *scratch; // kPackedScratchFloats
};

/// Scales and zeros of a chunk, and two constants.
inline constexpr int64_t kChunkNumbers = (4 * kChunkSteps + 2) * kPackedColumns;
/// Sums of two panels, one chunk of codes as f32, and its scales.
inline constexpr int64_t kPackedScratchFloats =
    2 * kPackedRows * kPackedColumns + kChunkTerms * kPackedColumns + kChunkNumbers;

struct PackedOps {
  void (*tile)(const PackedTile &);
  /// Quantises one row of k terms; terms up to the end of the last step become 0.
  void (*quantize)(const float *row, int64_t k, const PackedFormat &format, const QuantizedRows &out);
  /// Bytes of a row's codes per step: 32, or 64 where they are words for weights of 8 bits.
  int64_t (*codeBytes)(const PackedFormat &format);
  /// The k weights of one of a panel's columns.
  void (*column)(const PackedFormat &format, const uint8_t *panel, int64_t column, int64_t k, float *out);
  /// Splits one row of k terms for weights in bf16, or rounds it; null at levels that multiply them in f32.
  void (*split)(const float *row, int64_t k, const SplitRows &out);
};

extern const PackedOps packedOpsBaseline, packedOpsAvx2, packedOpsAvx512, packedOpsAmx;
/// tile and split alone, for rows in bf16 (vdpbf16ps).
extern const PackedOps packedOpsAvx512Bf16;

inline const PackedOps &packedOps(Isa isa) {
  return isa == Isa::Amx      ? packedOpsAmx
         : isa == Isa::Avx512 ? packedOpsAvx512
         : isa == Isa::Avx2   ? packedOpsAvx2
                              : packedOpsBaseline;
}

} // namespace dspark
