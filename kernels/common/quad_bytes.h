// Vectors of 64, 32 and 16 bytes under one name, for the level that has vpdpbusd: sums of four bytes a lane,
// and how four vectors of them become bytes.
#pragma once
#include "kernels/common/byte_range.h"
#include "kernels/common/vector_math.h"
#include <immintrin.h>

namespace dspark::simd {
namespace {

template <int kBytes> struct Quads;

template <> struct Quads<64> {
  using Vector = __m512i;
  using Floats = __m512;
  static DSPARK_SIMD Vector load(const void *p) { return _mm512_loadu_si512(p); }
  static DSPARK_SIMD void store(void *p, Vector v) { _mm512_storeu_si512(p, v); }
  static DSPARK_SIMD Vector zero() { return _mm512_setzero_si512(); }
  static DSPARK_SIMD Vector splat8(int8_t v) { return _mm512_set1_epi8(v); }
  static DSPARK_SIMD Vector splat16(int16_t v) { return _mm512_set1_epi16(v); }
  static DSPARK_SIMD Vector exclusiveOr(Vector a, Vector b) { return _mm512_xor_si512(a, b); }
  static DSPARK_SIMD Vector low8(Vector a, Vector b) { return _mm512_unpacklo_epi8(a, b); }
  static DSPARK_SIMD Vector high8(Vector a, Vector b) { return _mm512_unpackhi_epi8(a, b); }
  static DSPARK_SIMD Vector low16(Vector a, Vector b) { return _mm512_unpacklo_epi16(a, b); }
  static DSPARK_SIMD Vector high16(Vector a, Vector b) { return _mm512_unpackhi_epi16(a, b); }
  static DSPARK_SIMD Vector dot(Vector sum, Vector a, Vector b) { return _mm512_dpbusd_epi32(sum, a, b); }
  static DSPARK_SIMD Vector subtract(Vector a, Vector b) { return _mm512_sub_epi32(a, b); }
  static DSPARK_SIMD Floats floats(Vector v) { return _mm512_cvtepi32_ps(v); }
  static DSPARK_SIMD Floats loadFloats(const float *p) { return _mm512_loadu_ps(p); }
  static DSPARK_SIMD Vector nearest(Floats v) { return _mm512_cvtps_epi32(v); }
  static DSPARK_SIMD Vector words(Vector a, Vector b) { return _mm512_packs_epi32(a, b); }
  static DSPARK_SIMD Vector bounded(Vector v, Vector low, Vector high) {
    return _mm512_min_epi16(_mm512_max_epi16(v, low), high);
  }
  static DSPARK_SIMD Vector add16(Vector a, Vector b) { return _mm512_add_epi16(a, b); }
  static DSPARK_SIMD Vector bytes(Vector a, Vector b) { return _mm512_packus_epi16(a, b); }
};

template <> struct Quads<32> {
  using Vector = __m256i;
  using Floats = __m256;
  static DSPARK_SIMD Vector load(const void *p) { return _mm256_loadu_si256(static_cast<const Vector *>(p)); }
  static DSPARK_SIMD void store(void *p, Vector v) { _mm256_storeu_si256(static_cast<Vector *>(p), v); }
  static DSPARK_SIMD Vector zero() { return _mm256_setzero_si256(); }
  static DSPARK_SIMD Vector splat8(int8_t v) { return _mm256_set1_epi8(v); }
  static DSPARK_SIMD Vector splat16(int16_t v) { return _mm256_set1_epi16(v); }
  static DSPARK_SIMD Vector exclusiveOr(Vector a, Vector b) { return _mm256_xor_si256(a, b); }
  static DSPARK_SIMD Vector low8(Vector a, Vector b) { return _mm256_unpacklo_epi8(a, b); }
  static DSPARK_SIMD Vector high8(Vector a, Vector b) { return _mm256_unpackhi_epi8(a, b); }
  static DSPARK_SIMD Vector low16(Vector a, Vector b) { return _mm256_unpacklo_epi16(a, b); }
  static DSPARK_SIMD Vector high16(Vector a, Vector b) { return _mm256_unpackhi_epi16(a, b); }
  static DSPARK_SIMD Vector dot(Vector sum, Vector a, Vector b) { return _mm256_dpbusd_epi32(sum, a, b); }
  static DSPARK_SIMD Vector subtract(Vector a, Vector b) { return _mm256_sub_epi32(a, b); }
  static DSPARK_SIMD Floats floats(Vector v) { return _mm256_cvtepi32_ps(v); }
  static DSPARK_SIMD Floats loadFloats(const float *p) { return _mm256_loadu_ps(p); }
  static DSPARK_SIMD Vector nearest(Floats v) { return _mm256_cvtps_epi32(v); }
  static DSPARK_SIMD Vector words(Vector a, Vector b) { return _mm256_packs_epi32(a, b); }
  static DSPARK_SIMD Vector bounded(Vector v, Vector low, Vector high) {
    return _mm256_min_epi16(_mm256_max_epi16(v, low), high);
  }
  static DSPARK_SIMD Vector add16(Vector a, Vector b) { return _mm256_add_epi16(a, b); }
  static DSPARK_SIMD Vector bytes(Vector a, Vector b) { return _mm256_packus_epi16(a, b); }
};

template <> struct Quads<16> {
  using Vector = __m128i;
  using Floats = __m128;
  static DSPARK_SIMD Vector load(const void *p) { return _mm_loadu_si128(static_cast<const Vector *>(p)); }
  static DSPARK_SIMD void store(void *p, Vector v) { _mm_storeu_si128(static_cast<Vector *>(p), v); }
  static DSPARK_SIMD Vector zero() { return _mm_setzero_si128(); }
  static DSPARK_SIMD Vector splat8(int8_t v) { return _mm_set1_epi8(v); }
  static DSPARK_SIMD Vector splat16(int16_t v) { return _mm_set1_epi16(v); }
  static DSPARK_SIMD Vector exclusiveOr(Vector a, Vector b) { return _mm_xor_si128(a, b); }
  static DSPARK_SIMD Vector low8(Vector a, Vector b) { return _mm_unpacklo_epi8(a, b); }
  static DSPARK_SIMD Vector high8(Vector a, Vector b) { return _mm_unpackhi_epi8(a, b); }
  static DSPARK_SIMD Vector low16(Vector a, Vector b) { return _mm_unpacklo_epi16(a, b); }
  static DSPARK_SIMD Vector high16(Vector a, Vector b) { return _mm_unpackhi_epi16(a, b); }
  static DSPARK_SIMD Vector dot(Vector sum, Vector a, Vector b) { return _mm_dpbusd_epi32(sum, a, b); }
  static DSPARK_SIMD Vector subtract(Vector a, Vector b) { return _mm_sub_epi32(a, b); }
  static DSPARK_SIMD Floats floats(Vector v) { return _mm_cvtepi32_ps(v); }
  static DSPARK_SIMD Floats loadFloats(const float *p) { return _mm_loadu_ps(p); }
  static DSPARK_SIMD Vector nearest(Floats v) { return _mm_cvtps_epi32(v); }
  static DSPARK_SIMD Vector words(Vector a, Vector b) { return _mm_packs_epi32(a, b); }
  static DSPARK_SIMD Vector bounded(Vector v, Vector low, Vector high) {
    return _mm_min_epi16(_mm_max_epi16(v, low), high);
  }
  static DSPARK_SIMD Vector add16(Vector a, Vector b) { return _mm_add_epi16(a, b); }
  static DSPARK_SIMD Vector bytes(Vector a, Vector b) { return _mm_packus_epi16(a, b); }
};

/// Four rows of bytes to quads, and so 16 bytes of each at a time: lane 4 g + e of vector q holds bytes
/// 16 g + 4 q + e of the rows.
template <int kBytes>
DSPARK_SIMD void interleave(const typename Quads<kBytes>::Vector (&rows)[4],
                            typename Quads<kBytes>::Vector (&quads)[4]) {
  using Q = Quads<kBytes>;
  typename Q::Vector low = Q::low8(rows[0], rows[1]), high = Q::high8(rows[0], rows[1]),
                     lowNext = Q::low8(rows[2], rows[3]), highNext = Q::high8(rows[2], rows[3]);
  quads[0] = Q::low16(low, lowNext);
  quads[1] = Q::high16(low, lowNext);
  quads[2] = Q::low16(high, highNext);
  quads[3] = Q::high16(high, highNext);
}

/// What narrow_bytes.h does, for four vectors of values that int32 can hold: byte 16 g + 4 q + e is that of
/// lane 4 g + e of vector q, the order in which interleave() leaves channels. Signed bytes are unsigned ones
/// with another zero point and the highest bit turned.
template <int kBytes> class QuadNarrowing {
  using Q = Quads<kBytes>;

public:
  explicit DSPARK_SIMD QuadNarrowing(const ByteRange &range)
      : low(Q::splat16(range.low)), high(Q::splat16(range.high)),
        zero(Q::splat16(int16_t(range.zero + (range.isSigned ? 128 : 0)))),
        flip(Q::splat8(range.isSigned ? -128 : 0)) {}

  DSPARK_SIMD typename Q::Vector operator()(const typename Q::Floats (&value)[4]) const {
    typename Q::Vector first = Q::words(Q::nearest(value[0]), Q::nearest(value[1])),
                       second = Q::words(Q::nearest(value[2]), Q::nearest(value[3]));
    first = Q::add16(Q::bounded(first, low, high), zero);
    second = Q::add16(Q::bounded(second, low, high), zero);
    return Q::exclusiveOr(Q::bytes(first, second), flip);
  }

private:
  typename Q::Vector low, high, zero, flip;
};

/// What QuadNarrowing makes of four vectors to the bytes of one after those of another.
DSPARK_SIMD __m512i bytesInOrder(__m512i bytes) {
  return _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15),
                                  bytes);
}

} // namespace
} // namespace dspark::simd
