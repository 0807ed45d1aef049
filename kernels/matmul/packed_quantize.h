// Rows of A in 8 bits (packed.h). Included once per ISA level.
#pragma once
#include "kernels/matmul/packed_products.h"

namespace dspark {
namespace {

int64_t rowCodeBytesOf(const PackedFormat &format) { return rowCodeBytes(maxCode(format.code)); }

DSPARK_SIMD void putRowCodes(int8_t *out, vi codes) {
  *reinterpret_cast<vsbyte *>(out) = __builtin_convertvector(codes, vsbyte);
}

// Words 0, 2, 1, 3 of every quad.
DSPARK_SIMD void putRowWords(uint8_t *out, vi codes) {
#if defined(__AVX2__) && !defined(__AVX512F__)
  vi ordered = __builtin_shufflevector(codes, codes, 0, 2, 1, 3, 4, 6, 5, 7);
  *reinterpret_cast<vsword *>(out) = __builtin_convertvector(ordered, vsword);
#endif
}

// What sums of codes less kCentre start at, of the step whose terms k, k + kLanes ... are added up in lane k.
DSPARK_SIMD float centredStart(vi sums) {
  uint32_t pairs[2] = {}; // of terms that are no numbers sums may be anything
  for (int lane = 0; lane < kLanes; ++lane)
    pairs[lane / 2 % 2] -= uint32_t(kCentre) * uint32_t(sums[lane]);
  return __builtin_bit_cast(float, (pairs[0] & 0xffff) | pairs[1] << 16);
}

// What sums of codes start at on levels that kHasStarts.
DSPARK_SIMD float startBits(const PackedFormat &format, vi sums) {
  return __builtin_bit_cast(float, uint32_t(-format.zeroPoint) * uint32_t(__builtin_reduce_add(sums)));
}

void quantizeRow(const float *row, int64_t k, const PackedFormat &format, const QuantizedRows &out) {
  constexpr int kParts = int(kStepTerms) / kLanes;
  uint8_t *record = out.records;
  for (int64_t s = 0; s < out.steps;
       ++s, row += kStepTerms, k -= kStepTerms, record += out.codeBytes + kRowNumberBytes) {
    vf x[kParts];
    vi most = vi(0);
    for (int p = 0; p < kParts; ++p) {
      int64_t left = k - p * kLanes;
      x[p] = left >= kLanes ? load(row + p * kLanes) : loadLanes(row + p * kLanes, left > 0 ? left : 0);
      vi magnitude = bits(x[p]) & 0x7fffffff;
      most = magnitude > most ? magnitude : most;
    }
    // As bit patterns NaN is more than infinity, and stays. Steps of nothing but tiny numbers keep a scale
    // whose reciprocal is finite.
    float amax = __builtin_bit_cast(float, __builtin_reduce_max(most));
    amax = amax < 0x1p-100f ? 0x1p-100f : amax;
    float scale = amax / 127.0f, by = 127.0f / amax;
    vi halves[2] = {vi(0), vi(0)};
    for (int p = 0; p < kParts; ++p) {
      vi code = nearestInt(x[p] * by);
      if (out.codeBytes == kStepTerms)
        putRowCodes(reinterpret_cast<int8_t *>(record) + p * kLanes, code);
      else
        putRowWords(record + p * kLanes * 2, code);
      halves[p * 2 / kParts] += code;
    }
    bool isSplit = format.scalesPerStep() == 2;
    vi whole = halves[0] + halves[1], first = isSplit ? halves[0] : whole;
    vi second = isSplit ? halves[1] : vi(0);
    float numbers[4] = {scale};
    if (isStarted(format.zero)) {
      numbers[1] = startBits(format, first);
      numbers[2] = startBits(format, second);
    } else {
      float factor = format.zero == ZeroKind::Constant || format.zero == ZeroKind::Byte ? -1 : scale;
      numbers[1] = float(__builtin_reduce_add(first)) * factor;
      numbers[2] = float(__builtin_reduce_add(second)) * factor;
    }
    if constexpr (!kHasStarts)
      numbers[3] = centredStart(whole);
    static_assert(sizeof(numbers) == kRowNumberBytes);
    __builtin_memcpy(record + out.codeBytes, numbers, sizeof(numbers));
  }
}

} // namespace
} // namespace dspark
