// f16 and bf16 operands of kernels that compute in f32: blocks are converted on the way in and out.
#pragma once
#include "kernels/common/broadcast.h"
#include "kernels/elementwise/float_loops.h"

namespace dspark {

inline bool isHalf(DType type) { return type == DType::F16 || type == DType::BF16; }

struct HalfConversion {
  void (*toFloat)(const uint16_t *, float *, int64_t);
  void (*fromFloat)(const float *, uint16_t *, int64_t);

  HalfConversion() = default;
  HalfConversion(const FloatLoops &loops, DType type)
      : toFloat(type == DType::F16 ? loops.f16ToFloat : loops.bf16ToFloat),
        fromFloat(type == DType::F16 ? loops.floatToF16 : loops.floatToBf16) {}

  /// The block of n elements as f32, in `buffer`.
  const float *read(const BlockOperand &block, int64_t n, float *buffer) const {
    toFloat(static_cast<const uint16_t *>(block.data), buffer, block.isScalar ? 1 : n);
    return buffer;
  }
};

} // namespace dspark
