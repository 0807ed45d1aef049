// Rows of A as unsigned bytes, for the levels of igemm.h that multiply those: signed bytes have 128 added,
// and so has their zero point.
#pragma once
#include "kernels/matmul/igemm.h"

namespace dspark {
namespace {

// The zero point of a row as its bytes have it.
void quadRow(const void *a, bool isSigned, int64_t count, int64_t step, int16_t, std::byte *out) {
  const auto *from = static_cast<const uint8_t *>(a);
  auto *to = reinterpret_cast<uint8_t *>(out);
  uint8_t flip = isSigned ? 0x80 : 0;
  if (step == 1)
    for (int64_t i = 0; i < count; ++i)
      to[i] = from[i] ^ flip;
  else
    for (int64_t i = 0; i < count; ++i)
      to[i] = from[i * step] ^ flip;
}
void quadFill(bool isSigned, int64_t count, int16_t zero, std::byte *out) {
  __builtin_memset(out, isSigned ? zero + 128 : zero, size_t(count));
}

int32_t quadRowSum(const std::byte *row, int64_t k, int16_t zero) {
  const auto *a = reinterpret_cast<const uint8_t *>(row);
  uint32_t sum = 0;
  for (int64_t i = 0; i < k; ++i)
    sum += a[i];
  return int32_t(sum - uint32_t(k) * uint32_t(zero));
}

} // namespace
} // namespace dspark
