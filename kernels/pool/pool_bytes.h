// Pooling of bytes with channels last, channels in vector lanes. Signed bytes are read with their top bit
// flipped, so that one loop serves both. Plain data: the files of the ISA levels include nothing else.
#pragma once
#include "kernels/common/isa.h"
#include <cstdint>

namespace dspark {

struct PoolBytes {
  const uint8_t *const *taps; // [count] input pixels of the window that lie inside the image
  int64_t count;
  int64_t channels;
  uint8_t xFlip, yFlip; // 0x80 for signed bytes, else 0
  uint8_t *y;
  // Of an average: nearest((sum - shift) * scale) + zero. The zero point is that of the flipped bytes.
  int32_t shift;
  float scale, zero;
};

struct PoolBytesOps {
  void (*max)(const PoolBytes &);
  void (*average)(const PoolBytes &);
};

extern const PoolBytesOps poolBytesOpsBaseline, poolBytesOpsAvx2, poolBytesOpsAvx512;

inline const PoolBytesOps &poolBytesOps(Isa isa) {
  return isa == Isa::Avx512 ? poolBytesOpsAvx512 : isa == Isa::Avx2 ? poolBytesOpsAvx2 : poolBytesOpsBaseline;
}

} // namespace dspark
