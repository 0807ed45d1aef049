// Sums of dequantised bytes that are quantised in their turn, for AVX-512: two multiply-adds in place of
// seven steps that round, wherever rounding cannot tell (qlinear_binary: 27 % less time).
#pragma once
#include "kernels/common/quad_bytes.h"

namespace dspark::simd {
namespace {

/// nearest(((a - aZero) * aScale + (b - bZero) * bScale) / yScale), bounded, plus a zero point, for numbers a
/// and b of at most 255.
class WholeSums {
public:
  /// Errors are at most 8 * 2^-24 of the largest sum of magnitudes: 3 of the two multiply-adds, 3 of the
  /// steps, 2 of the interval's ends.
  WholeSums(float aScale, float aZero, float bScale, float bZero, float yScale, const ByteRange &range)
      : narrow(range) {
    double a = double(aScale) / double(yScale), b = double(bScale) / double(yScale),
           shift = -(double(aZero) * a + double(bZero) * b);
    double error = (255 * (__builtin_fabs(a) + __builtin_fabs(b)) + __builtin_fabs(shift)) * 0x1p-21;
    suits = error < 0x1p-6 && isUsual(aScale) && isUsual(bScale) && isUsual(yScale);
    aFactor = splat(float(a));
    bFactor = splat(float(b));
    low = splat(float(shift - error));
    width = splat(float(2 * error));
  }
  bool suits; // else no block should be tried

  /// False where the ends of an interval that holds both what is computed and what the steps give are not
  /// rounded to the same: then the steps have to be taken.
  DSPARK_SIMD bool take(const vf (&a)[4], const vf (&b)[4], __m512i &bytes) const {
    __m512i whole[4], differs = _mm512_setzero_si512();
#pragma clang loop unroll(full)
    for (int v = 0; v < 4; ++v) {
      vf value = fma(a[v], aFactor, fma(b[v], bFactor, low));
      whole[v] = _mm512_cvtps_epi32(__m512(value));
      differs =
          _mm512_or_si512(differs, _mm512_xor_si512(whole[v], _mm512_cvtps_epi32(__m512(value + width))));
    }
    if (_mm512_test_epi32_mask(differs, differs))
      return false;
    bytes = bytesInOrder(narrow(whole));
    return true;
  }

private:
  /// No step leaves the normal numbers.
  static bool isUsual(float scale) {
    float size = __builtin_fabsf(scale);
    return size > 0x1p-100f && size < 0x1p100f;
  }

  vf aFactor, bFactor, low, width;
  QuadNarrowing narrow;
};

} // namespace
} // namespace dspark::simd
