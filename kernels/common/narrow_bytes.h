// 16 whole numbers in f32 as bytes, included once per ISA level.
#pragma once
#include "kernels/common/byte_range.h"
#include "kernels/common/vector_math.h"
#include <immintrin.h>

namespace dspark::simd {
namespace {

constexpr int kByteVectors = 16 / kLanes;

/// A range as vectors, so that loops that store bytes, which may lie anywhere, need not read it again.
class ByteNarrowing {
public:
  explicit DSPARK_SIMD ByteNarrowing(const ByteRange &range)
      : most(splat(range.high)), low(splatWords(range.low)), high(splatWords(range.high)),
        zero(splatWords(range.zero)), isSigned(range.isSigned) {}

  /// nearest(value), bounded, plus the zero point. The minimum in front of the conversion keeps NaN, which
  /// like everything that is too low becomes the least integer.
  DSPARK_SIMD __m128i operator()(const vf (&value)[kByteVectors]) const {
#if defined(__AVX512F__)
    __m512i whole = _mm512_cvtps_epi32(_mm512_min_ps(__m512(most), __m512(value[0])));
    __m256i words = bounded(_mm512_cvtsepi32_epi16(whole));
    return isSigned ? _mm256_cvtsepi16_epi8(words)
                    : _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
#elif defined(__AVX2__)
    __m256i words = bounded(_mm256_packs_epi32(nearest(value[0]), nearest(value[1])));
    __m128i first = _mm256_castsi256_si128(words), second = _mm256_extracti128_si256(words, 1);
    __m128i bytes = isSigned ? _mm_packs_epi16(first, second) : _mm_packus_epi16(first, second);
    return _mm_shuffle_epi32(bytes, 0xd8); // groups of four lie in order 0 2 1 3
#else
    __m128i lower = bounded(_mm_packs_epi32(nearest(value[0]), nearest(value[1]))),
            upper = bounded(_mm_packs_epi32(nearest(value[2]), nearest(value[3])));
    return isSigned ? _mm_packs_epi16(lower, upper) : _mm_packus_epi16(lower, upper);
#endif
  }

private:
#if defined(__AVX2__)
  using Words = __m256i;
  static DSPARK_SIMD Words splatWords(int16_t v) { return _mm256_set1_epi16(v); }
  DSPARK_SIMD Words bounded(Words v) const {
    return _mm256_add_epi16(_mm256_min_epi16(_mm256_max_epi16(v, low), high), zero);
  }
#else
  using Words = __m128i;
  static DSPARK_SIMD Words splatWords(int16_t v) { return _mm_set1_epi16(v); }
  DSPARK_SIMD Words bounded(Words v) const {
    return _mm_add_epi16(_mm_min_epi16(_mm_max_epi16(v, low), high), zero);
  }
#endif
#if defined(__AVX2__) && !defined(__AVX512F__)
  DSPARK_SIMD __m256i nearest(vf v) const {
    return _mm256_cvtps_epi32(_mm256_min_ps(__m256(most), __m256(v)));
  }
#elif !defined(__AVX2__)
  DSPARK_SIMD __m128i nearest(vf v) const { return _mm_cvtps_epi32(_mm_min_ps(__m128(most), __m128(v))); }
#endif

  vf most;
  Words low, high, zero;
  bool isSigned;
};

} // namespace
} // namespace dspark::simd
