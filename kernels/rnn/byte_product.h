// f32 rows from a product of bytes: rows of activations, each with a scale and a zero point of its own, times
// the 8-bit W or R of one direction of a recurrent layer.
#pragma once
#include "kernels/common/kernel.h"
#include "kernels/common/shares.h"
#include "kernels/matmul/igemm.h"
#include "kernels/quant/byte_scale.h"

namespace dspark {

/// One direction's matrix [k, width], packed (igemm.h), with one scale and zero point or one per column.
struct ByteMatrix {
  const std::byte *panels;
  int64_t k, width;
  const float *scale;
  const std::byte *zero; // of the matrix's type; null is 0
  int64_t step;          // between columns' scales and zero points: 0 or 1
  bool isSigned;

  int64_t panelCount() const { return ceilOf(width, kIntegerColumns); }
};

class ByteProduct {
public:
  /// Bytes of scratch, at a cache line, for products of up to `rows` rows of at most `k` terms with `width`
  /// columns.
  static int64_t scratchBytes(int64_t rows, int64_t k, int64_t width);
  ByteProduct(const IgemmOps &ops, const ByteMatrix &matrix, int64_t rows, std::byte *scratch);

  /// Row r [k] of the product's left side; it is copied.
  void setRow(int64_t r, const uint8_t *bytes, ByteScale scale);
  /// `rows` rows times the columns of panels [begin, end), plus bias [width] if there is one, to rows of `to`
  /// that are `stride` floats apart; `to` is the place of the matrix's column 0.
  void run(int64_t rows, int64_t begin, int64_t end, const float *bias, float *to, int64_t stride);

private:
  void finish(int64_t rows, int64_t panel, const float *bias, int32_t *sums, float *to, int64_t stride);

  const IgemmOps &ops;
  const ByteMatrix &matrix;
  // In scratch: the rows as `ops` wants them, their sums, scales and zero points; the same of whole panels'
  // columns; a tile's sums.
  std::byte *left, *wide;
  int32_t *sums, *rowSums;
  float *rowScales, *columnScales;
  int16_t *rowZeros, *columnZeros;
  bool hasColumnZeros = false;
};

} // namespace dspark
