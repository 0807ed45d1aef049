// Packing of 8-bit B for igemm.h, the same at every ISA level.
#pragma once
#include "kernels/common/contract.h"
#include "kernels/matmul/igemm.h"

namespace dspark {
namespace {

template <typename T>
void packQuads(const T *b, int64_t k, int64_t columns, int64_t kStride, int64_t nStride, int8_t *panel) {
  constexpr int kOffset = T(-1) < T(0) ? 0 : 128;
  uint32_t sums[kIntegerColumns] = {};
  __builtin_memset(panel, 0, size_t(panelBytes(k)));
  for (int64_t q = 0; q < k; q += 4) {
    int64_t terms = k - q < 4 ? k - q : 4;
    int8_t *quad = panel + q * kIntegerColumns;
    for (int64_t j = 0; j < columns; ++j)
      for (int64_t i = 0; i < terms; ++i) {
        quad[j * 4 + i] = int8_t(b[(q + i) * kStride + j * nStride] - kOffset);
        sums[j] += uint32_t(quad[j * 4 + i]);
      }
  }
  __builtin_memcpy(panel + panelBytes(k), sums, sizeof(sums));
}

void packAny(const void *b, bool isSigned, int64_t k, int64_t columns, int64_t kStride, int64_t nStride,
             std::byte *panel) {
  DSPARK_EXPECTS(columns > 0 && columns <= kIntegerColumns && k >= 0);
  DSPARK_EXPECTS(isReadable(b, k) && panel);
  auto *out = reinterpret_cast<int8_t *>(panel);
  if (isSigned)
    packQuads(static_cast<const int8_t *>(b), k, columns, kStride, nStride, out);
  else
    packQuads(static_cast<const uint8_t *>(b), k, columns, kStride, nStride, out);
}

} // namespace
} // namespace dspark
