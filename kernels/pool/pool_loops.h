// Pooling one output pixel with channels last, channels in vector lanes. Plain data: the files of the ISA
// levels include nothing else.
#pragma once
#include "kernels/common/isa.h"
#include <cstdint>

namespace dspark {

enum class PoolKind : uint8_t { Max, Average, Lp };

struct PoolPixel {
  const float *const *taps; // [count] input pixels of the window that lie inside the image
  int64_t count;
  int64_t channels;
  PoolKind kind;
  float scale; // what an average multiplies by
  float *y;
};

extern void (*const poolPixelBaseline)(const PoolPixel &);
extern void (*const poolPixelAvx2)(const PoolPixel &);
extern void (*const poolPixelAvx512)(const PoolPixel &);

inline auto poolPixel(Isa isa) {
  return isa == Isa::Avx512 ? poolPixelAvx512 : isa == Isa::Avx2 ? poolPixelAvx2 : poolPixelBaseline;
}

} // namespace dspark
