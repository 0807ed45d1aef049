// What becomes of the sums of igemm.h, included once per ISA level.
#pragma once
#include "kernels/common/vector_math.h"
#include "kernels/matmul/igemm.h"
#include <immintrin.h>

namespace dspark {
namespace {

constexpr int kSumVectors = int(kIntegerColumns) / simd::kLanes;

// 16 whole numbers in f32, each within an int16 of its zero point, as bytes.
inline __m128i narrow(const simd::vf (&value)[kSumVectors], int16_t zero, bool isSigned) {
#if defined(__AVX512F__)
  return _mm512_cvtepi32_epi8(
      _mm512_add_epi32(_mm512_cvtps_epi32(__m512(value[0])), _mm512_set1_epi32(zero)));
#else
#if defined(__AVX2__)
  __m256i words =
      _mm256_packs_epi32(_mm256_cvtps_epi32(__m256(value[0])), _mm256_cvtps_epi32(__m256(value[1])));
  words = _mm256_permute4x64_epi64(words, 0xd8);
  __m128i low = _mm256_castsi256_si128(words), high = _mm256_extracti128_si256(words, 1);
#else
  __m128i low = _mm_packs_epi32(_mm_cvtps_epi32(__m128(value[0])), _mm_cvtps_epi32(__m128(value[1])));
  __m128i high = _mm_packs_epi32(_mm_cvtps_epi32(__m128(value[2])), _mm_cvtps_epi32(__m128(value[3])));
#endif
  low = _mm_add_epi16(low, _mm_set1_epi16(zero));
  high = _mm_add_epi16(high, _mm_set1_epi16(zero));
  return isSigned ? _mm_packs_epi16(low, high) : _mm_packus_epi16(low, high);
#endif
}

// sum * scale + offset of one row's vector v.
template <typename Rule> DSPARK_SIMD simd::vf scaledSum(const int32_t *sums, const Rule &rule, int v) {
  using namespace simd;
  typedef int32_t viUnaligned __attribute__((ext_vector_type(kLanes), aligned(4)));
  vi sum = *reinterpret_cast<const viUnaligned *>(sums + v * kLanes);
  if (rule.bias)
    sum += *reinterpret_cast<const viUnaligned *>(rule.bias + v * kLanes);
  return __builtin_convertvector(sum, vf) * load(rule.scale + v * kLanes) + load(rule.offset + v * kLanes);
}

void sumsToBytes(const int32_t *sums, const SumsToBytes &rule) {
  using namespace simd;
  vf low = splat(rule.low), high = splat(rule.high);
  for (int64_t r = 0; r < rule.rows; ++r, sums += kIntegerColumns) {
    vf value[kSumVectors];
#pragma clang loop unroll(full)
    for (int v = 0; v < kSumVectors; ++v) {
      value[v] = scaledSum(sums, rule, v);
      // The first comparison also sends NaN to the lower end.
      value[v] = select(value[v] > low, value[v], low);
      value[v] = select(value[v] < high, value[v], high);
    }
    __m128i bytes = narrow(value, rule.zero, rule.isSigned);
    std::byte *y = rule.y + r * rule.stride;
    if (rule.columns == kIntegerColumns)
      _mm_storeu_si128(reinterpret_cast<__m128i *>(y), bytes);
    else
      __builtin_memcpy(y, &bytes, size_t(rule.columns));
  }
}

void sumsToFloats(const int32_t *sums, const SumsToFloats &rule) {
  using namespace simd;
  for (int64_t r = 0; r < rule.rows; ++r, sums += kIntegerColumns) {
    float row[kIntegerColumns], *y = rule.y + r * rule.stride;
    bool isFull = rule.columns == kIntegerColumns;
#pragma clang loop unroll(full)
    for (int v = 0; v < kSumVectors; ++v)
      store((isFull ? y : row) + v * kLanes, scaledSum(sums, rule, v));
    if (!isFull)
      __builtin_memcpy(y, row, size_t(rule.columns) * sizeof(float));
  }
}

} // namespace
} // namespace dspark
