// The exact 8-bit product: both operands widened to 16 bits with their zero points taken off (|value| <=
// 255), terms in pairs, 32-bit sums. A pair's sum is at most 2 * 255^2, so nothing saturates; the u8 x s8
// instruction of AVX2, which would be twice as wide, saturates at 16 bits. AVX-512 uses VNNI's 16-bit form.
#pragma once
#include "kernels/common/isa.h"
#include <cstdint>

namespace dspark {

inline constexpr int64_t kIntegerRows = 96; // of one tile

struct IgemmTile {
  const int16_t *a; // [rows][2 * pairs]
  int64_t rows, pairs;
  const int16_t *b; // one panel, [pairs][16][2]
  int32_t *c;       // [rows][16]
};

struct IgemmOps {
  void (*tile)(const IgemmTile &);
  /// Copies `columns` columns (at most 16) of 8-bit B into a panel, minus zero[16]. Element (k, n) lies at
  /// k * kStride + n * nStride.
  void (*pack)(const void *b, bool isSigned, int64_t k, int64_t columns, int64_t kStride, int64_t nStride,
               const int16_t *zero, int16_t *panel);
  /// The same from the packed layout panel16k4.
  void (*unpack)(const void *b, bool isSigned, int64_t k, const int16_t *zero, int16_t *panel);
  /// One row of A: `count` values at `step` apart, minus zero; padded to an even number.
  void (*row)(const void *a, bool isSigned, int64_t count, int64_t step, int16_t zero, int16_t *out);
};

extern const IgemmOps igemmOpsBaseline, igemmOpsAvx2, igemmOpsAvx512;

inline const IgemmOps &igemmOps(Isa isa) {
  return isa == Isa::Avx512 ? igemmOpsAvx512 : isa == Isa::Avx2 ? igemmOpsAvx2 : igemmOpsBaseline;
}

/// How a 32-bit sum becomes an 8-bit result: round(sum * scale) + zero, saturated.
struct Requantize {
  float scale;
  int32_t zero;
  bool isSigned;
  uint8_t operator()(int32_t sum) const {
    float value = __builtin_nearbyintf(float(sum) * scale) + float(zero);
    float low = isSigned ? -128.0f : 0.0f, high = isSigned ? 127.0f : 255.0f;
    value = !(value >= low) ? low : value > high ? high : value;
    return uint8_t(int32_t(value));
  }
};

} // namespace dspark
