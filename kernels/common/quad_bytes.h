// Sums of four bytes a lane, for the level that has vpdpbusd: how bytes come to lie for them, and how four
// vectors of sums become bytes.
#pragma once
#include "kernels/common/byte_range.h"
#include "kernels/common/vector_math.h"
#include <immintrin.h>

namespace dspark::simd {
namespace {

/// Four rows of bytes to quads, and so 16 bytes of each at a time: lane 4 g + e of vector q holds bytes
/// 16 g + 4 q + e of the rows.
DSPARK_SIMD void interleave(const __m512i (&rows)[4], __m512i (&quads)[4]) {
  __m512i low = _mm512_unpacklo_epi8(rows[0], rows[1]), high = _mm512_unpackhi_epi8(rows[0], rows[1]),
          lowNext = _mm512_unpacklo_epi8(rows[2], rows[3]), highNext = _mm512_unpackhi_epi8(rows[2], rows[3]);
  quads[0] = _mm512_unpacklo_epi16(low, lowNext);
  quads[1] = _mm512_unpackhi_epi16(low, lowNext);
  quads[2] = _mm512_unpacklo_epi16(high, highNext);
  quads[3] = _mm512_unpackhi_epi16(high, highNext);
}

/// What narrow_bytes.h does, for four vectors of values that int32 can hold: byte 16 g + 4 q + e is that of
/// lane 4 g + e of vector q, the order in which interleave() leaves bytes. Signed bytes are unsigned ones
/// with another zero point and the highest bit turned.
class QuadNarrowing {
public:
  explicit DSPARK_SIMD QuadNarrowing(const ByteRange &range)
      : low(_mm512_set1_epi16(range.low)), high(_mm512_set1_epi16(range.high)),
        zero(_mm512_set1_epi16(int16_t(range.zero + (range.isSigned ? 128 : 0)))),
        flip(_mm512_set1_epi8(range.isSigned ? -128 : 0)) {}

  DSPARK_SIMD __m512i operator()(const __m512 (&value)[4]) const {
    const __m512i whole[4] = {_mm512_cvtps_epi32(value[0]), _mm512_cvtps_epi32(value[1]),
                              _mm512_cvtps_epi32(value[2]), _mm512_cvtps_epi32(value[3])};
    return operator()(whole);
  }
  /// The same of values that are rounded already.
  DSPARK_SIMD __m512i operator()(const __m512i (&whole)[4]) const {
    return _mm512_xor_si512(_mm512_packus_epi16(words(whole[0], whole[1]), words(whole[2], whole[3])), flip);
  }

private:
  DSPARK_SIMD __m512i words(__m512i a, __m512i b) const {
    __m512i whole = _mm512_packs_epi32(a, b);
    return _mm512_add_epi16(_mm512_min_epi16(_mm512_max_epi16(whole, low), high), zero);
  }

  __m512i low, high, zero, flip;
};

/// What QuadNarrowing makes of four vectors to the bytes of one after those of another.
DSPARK_SIMD __m512i bytesInOrder(__m512i bytes) {
  return _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15),
                                  bytes);
}

} // namespace
} // namespace dspark::simd
