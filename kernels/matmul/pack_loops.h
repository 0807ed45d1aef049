// Panels of B made while a product runs, for operands that no compiler packed: copied, transposed or widened
// from 8 bits. Included once per ISA level.
#pragma once
#include "kernels/common/contract.h"
#include "kernels/common/vector_math.h"
#include "kernels/matmul/gemm.h"

namespace dspark {
namespace {

using namespace simd;

typedef float v4 __attribute__((ext_vector_type(4)));
typedef float v4Unaligned __attribute__((ext_vector_type(4), aligned(4)));

// Four columns of the panel from four rows of the source, four terms at a time.
DSPARK_SIMD void transposeFour(const float *const *rows, int64_t k, float *panel) {
  v4 r[4];
  for (int i = 0; i < 4; ++i)
    r[i] = *reinterpret_cast<const v4Unaligned *>(rows[i] + k);
  v4 low01 = __builtin_shufflevector(r[0], r[1], 0, 4, 1, 5),
     high01 = __builtin_shufflevector(r[0], r[1], 2, 6, 3, 7);
  v4 low23 = __builtin_shufflevector(r[2], r[3], 0, 4, 1, 5),
     high23 = __builtin_shufflevector(r[2], r[3], 2, 6, 3, 7);
  auto put = [&](int i, v4 v) { *reinterpret_cast<v4Unaligned *>(panel + i * kPanel) = v; };
  put(0, __builtin_shufflevector(low01, low23, 0, 1, 4, 5));
  put(1, __builtin_shufflevector(low01, low23, 2, 3, 6, 7));
  put(2, __builtin_shufflevector(high01, high23, 0, 1, 4, 5));
  put(3, __builtin_shufflevector(high01, high23, 2, 3, 6, 7));
}

void packPanel(const float *b, int64_t k, int64_t columns, int64_t kStride, int64_t nStride, float *panel) {
  DSPARK_EXPECTS(columns > 0 && k >= 0 && isReadable(b, k) && isReadable(panel, k));
  if (columns < kPanel)
    __builtin_memset(panel, 0, size_t(k * kPanel) * sizeof(float));
  else
    columns = kPanel;
  if (nStride == 1 && columns == kPanel) {
    for (int64_t i = 0; i < k; ++i)
      __builtin_memcpy(panel + i * kPanel, b + i * kStride, kPanel * sizeof(float));
    return;
  }
  int64_t j = 0;
  for (; kStride == 1 && j + 4 <= columns; j += 4) {
    const float *rows[4];
    for (int r = 0; r < 4; ++r)
      rows[r] = b + (j + r) * nStride;
    int64_t i = 0;
    for (; i + 4 <= k; i += 4)
      transposeFour(rows, i, panel + i * kPanel + j);
    for (; i < k; ++i)
      for (int r = 0; r < 4; ++r)
        panel[i * kPanel + j + r] = rows[r][i];
  }
  for (int64_t i = 0; i < k; ++i)
    for (int64_t c = j; c < columns; ++c)
      panel[i * kPanel + c] = b[i * kStride + c * nStride];
}

template <typename T>
void widenPanel(const T *b, int64_t k, int64_t columns, int64_t kStride, int64_t nStride, const float *zero,
                float *panel) {
  typedef T vbyte __attribute__((ext_vector_type(kLanes), aligned(1)));
  if (columns >= kPanel && nStride == 1) {
    for (int64_t i = 0; i < k; ++i)
      for (int v = 0; v < kPanel; v += kLanes)
        store(panel + i * kPanel + v,
              __builtin_convertvector(*reinterpret_cast<const vbyte *>(b + i * kStride + v), vf) -
                  load(zero + v));
    return;
  }
  columns = columns < kPanel ? columns : kPanel;
  for (int64_t i = 0; i < k; ++i)
    for (int64_t c = 0; c < kPanel; ++c)
      panel[i * kPanel + c] = c < columns ? float(b[i * kStride + c * nStride]) - zero[c] : 0;
}

void widenAny(const void *b, bool isSigned, int64_t k, int64_t columns, int64_t kStride, int64_t nStride,
              const float *zero, float *panel) {
  DSPARK_EXPECTS(columns > 0 && k >= 0 && isReadable(b, k) && isReadable(panel, k));
  if (isSigned)
    widenPanel(static_cast<const int8_t *>(b), k, columns, kStride, nStride, zero, panel);
  else
    widenPanel(static_cast<const uint8_t *>(b), k, columns, kStride, nStride, zero, panel);
}

} // namespace
} // namespace dspark
