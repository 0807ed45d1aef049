#include "kernels/rnn/byte_product.h"
#include "kernels/matmul/integer_result.h"
#include <algorithm>

namespace dspark {
namespace {

int64_t lines(int64_t bytes) { return ceilOf(bytes, 64) * 64; }
int64_t leftBytes(int64_t rows, int64_t k) { return lines(rows * ((k + 3) / 4 * 4) * 2); }
int64_t sumBytes(int64_t rows) { return kIntegerPanels * rows * kIntegerColumns * 4; }

int64_t allColumns(int64_t width) { return ceilOf(width, kIntegerColumns) * kIntegerColumns; }

} // namespace

int64_t ByteProduct::scratchBytes(int64_t rows, int64_t k, int64_t width) {
  return leftBytes(rows, k) + kIntegerScratch + sumBytes(rows) + 3 * lines(rows * 4) +
         2 * lines(allColumns(width) * 4);
}

ByteProduct::ByteProduct(const IgemmOps &ops, const ByteMatrix &m, int64_t rows, std::byte *scratch)
    : ops(ops), matrix(m) {
  auto take = [&](int64_t bytes) {
    std::byte *at = scratch;
    scratch += bytes;
    return at;
  };
  int64_t columnBytes = lines(allColumns(m.width) * 4);
  left = take(leftBytes(rows, m.k));
  wide = take(kIntegerScratch);
  sums = reinterpret_cast<int32_t *>(take(sumBytes(rows)));
  rowSums = reinterpret_cast<int32_t *>(take(lines(rows * 4)));
  rowScales = reinterpret_cast<float *>(take(lines(rows * 4)));
  rowZeros = reinterpret_cast<int16_t *>(take(lines(rows * 4)));
  columnScales = reinterpret_cast<float *>(take(columnBytes));
  columnZeros = reinterpret_cast<int16_t *>(take(columnBytes));
  for (int64_t j = 0; j < allColumns(m.width); ++j) {
    int64_t at = j * m.step;
    bool isColumn = j < m.width;
    int value = !m.zero || !isColumn ? 0 : m.isSigned ? int(int8_t(m.zero[at])) : int(uint8_t(m.zero[at]));
    columnScales[j] = isColumn ? m.scale[at] : 0;
    columnZeros[j] = int16_t(isColumn ? value - (m.isSigned ? 0 : 128) : 0); // of the panels' signed bytes
    hasColumnZeros |= columnZeros[j] != 0;
  }
}

void ByteProduct::setRow(int64_t r, const uint8_t *bytes, ByteScale scale) {
  std::byte *row = left + r * rowBytes(ops, matrix.k);
  ops.row(bytes, false, matrix.k, 1, scale.zero, row);
  rowZeros[r] = rowZero(ops, false, scale.zero);
  rowSums[r] = hasColumnZeros ? ops.rowSum(row, matrix.k, rowZeros[r]) : 0;
  rowScales[r] = scale.scale;
}

void ByteProduct::run(int64_t rows, int64_t begin, int64_t end, const float *bias, float *to,
                      int64_t stride) {
  int64_t panelStep = packedPanelBytes(matrix.k);
  for (int64_t panel = begin; panel < end; panel += kIntegerPanels) {
    int64_t panels = std::min(kIntegerPanels, end - panel);
    ops.tile(
        {left, rowZeros, rows, matrix.k, matrix.panels + panel * panelStep, panels, wide, sums, nullptr});
    for (int64_t p = 0; p < panels; ++p)
      finish(rows, panel + p, bias, sums + p * rows * kIntegerColumns, to, stride);
  }
}

void ByteProduct::finish(int64_t rows, int64_t panel, const float *bias, int32_t *panelSums, float *to,
                         int64_t stride) {
  static constexpr int32_t kNoBias[kIntegerColumns] = {};
  int64_t column = panel * kIntegerColumns, columns = std::min(kIntegerColumns, matrix.width - column);
  if (hasColumnZeros)
    takeOffZeros(panelSums, rows, rowSums, columnZeros + column);
  alignas(64) float scale[kIntegerColumns], offset[kIntegerColumns] = {};
  if (bias)
    std::copy_n(bias + column, columns, offset);
  // Rows of one scale together.
  for (int64_t r = 0, next; r < rows; r = next) {
    for (next = r + 1; next < rows && rowScales[next] == rowScales[r];)
      ++next;
    for (int64_t j = 0; j < kIntegerColumns; ++j)
      scale[j] = rowScales[r] * columnScales[column + j];
    float *y = to + r * stride + column;
    ops.finish(panelSums + r * kIntegerColumns, {kNoBias, scale, offset, columns, next - r, stride,
                                                 reinterpret_cast<std::byte *>(y), y, ByteRange()});
  }
}

} // namespace dspark
