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

// Runs of at least as many bytes as a vector has: the last vector overlaps the one before.
template <int kBytes>
void copyRuns(const uint8_t *from, int64_t count, int64_t stride, int64_t runs, uint8_t *to, int64_t outStep,
              uint8_t flip) {
  typedef uint8_t Bytes __attribute__((ext_vector_type(kBytes), aligned(1)));
  auto copy = [&](int64_t i) __attribute__((always_inline)) {
    *reinterpret_cast<Bytes *>(to + i) = *reinterpret_cast<const Bytes *>(from + i) ^ flip;
  };
  for (; runs > 0; --runs, from += stride, to += outStep) {
    for (int64_t i = 0; i < count - kBytes; i += kBytes)
      copy(i);
    copy(count - kBytes);
  }
}
[[maybe_unused]] void quadRuns(const void *a, bool isSigned, int64_t count, int64_t stride, int64_t runs,
                               std::byte *out, int64_t outStep) {
  const auto *from = static_cast<const uint8_t *>(a);
  auto *to = reinterpret_cast<uint8_t *>(out);
  uint8_t flip = isSigned ? 0x80 : 0;
  if (count >= 64)
    return copyRuns<64>(from, count, stride, runs, to, outStep, flip);
  if (count >= 32)
    return copyRuns<32>(from, count, stride, runs, to, outStep, flip);
  if (count >= 16)
    return copyRuns<16>(from, count, stride, runs, to, outStep, flip);
  for (; runs > 0; --runs, from += stride, to += outStep)
    quadRow(from, isSigned, count, 1, 0, reinterpret_cast<std::byte *>(to));
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
