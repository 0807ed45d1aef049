// Loops over runs of elements that share one scale and zero point, or that have one each; compiled once per
// ISA level.
#pragma once
#include "kernels/common/byte_range.h"
#include "kernels/common/isa.h"
#include <cstdint>

namespace dspark {

/// y = saturate(round(x / scale) + zero); `step` is 0 where one scale serves the run, else 1. A null `zero`
/// is 0.
template <typename T>
using QuantizeLoop = void (*)(const float *x, const float *scale, const T *zero, int64_t step, T *y,
                              int64_t n);
/// y = (x - zero) * scale
template <typename T>
using DequantizeLoop = void (*)(const T *x, const float *scale, const T *zero, int64_t step, float *y,
                                int64_t n);

enum class QuantBinary : uint8_t { Add, Sub, Mul };

/// y = quantised kind(a, b) for n bytes. Signed operands are read with their top bit flipped, and their zero
/// points are those of the flipped bytes, so that one loop serves all types. Every step rounds as
/// dequantising, computing in f32 and quantising do.
struct QuantBinaryRun {
  QuantBinary kind;
  const uint8_t *a, *b;
  bool aIsScalar, bIsScalar;
  uint8_t aFlip, bFlip; // 0 or 0x80
  float aScale, bScale, yScale, aZero, bZero;
  ByteRange range; // of y
  uint8_t *y;
  int64_t n;
};

struct QuantLoops {
  QuantizeLoop<uint8_t> quantizeU8;
  QuantizeLoop<int8_t> quantizeI8;
  DequantizeLoop<uint8_t> dequantizeU8;
  DequantizeLoop<int8_t> dequantizeI8;
  DequantizeLoop<int32_t> dequantizeI32;
  /// Lowers *low and raises *high to the block's smallest and largest element.
  void (*range)(const float *x, int64_t n, float *low, float *high);
  void (*binary)(const QuantBinaryRun &);
};

extern const QuantLoops kQuantLoopsBaseline, kQuantLoopsAvx2, kQuantLoopsAvx512;

inline const QuantLoops &quantLoops(Isa isa) {
  return isa == Isa::Avx512 ? kQuantLoopsAvx512 : isa == Isa::Avx2 ? kQuantLoopsAvx2 : kQuantLoopsBaseline;
}

} // namespace dspark
