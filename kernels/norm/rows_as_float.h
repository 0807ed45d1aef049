// Runs of any floating-point type as f32, for kernels whose loops are f32: an f32 run is used where it lies,
// others pass through a buffer of the thread's scratch.
#pragma once
#include "kernels/common/element.h"
#include "kernels/common/kernel.h"
#include "kernels/elementwise/half.h"

namespace dspark::norm_ops {

class RowsAsFloat {
public:
  explicit RowsAsFloat(Isa isa) : loops(floatLoops(isa)) {}

  /// Elements [begin, begin + n) of x, which is f32, f16 or bf16; `buffer` has room for n.
  const float *load(const TensorView &x, int64_t begin, int64_t n, float *buffer) const {
    if (x.type == DType::F32)
      return x.as<const float>() + begin;
    HalfConversion(loops, x.type).toFloat(x.as<const uint16_t>() + begin, buffer, n);
    return buffer;
  }
  /// Where to compute elements [begin, begin + n) of y: in place if it is f32, else in the buffer.
  static float *target(const TensorView &y, int64_t begin, float *buffer) {
    return y.type == DType::F32 ? y.as<float>() + begin : buffer;
  }
  /// Rounds what was computed there into y.
  void store(const TensorView &y, int64_t begin, int64_t n, const float *computed) const {
    if (y.type != DType::F32)
      HalfConversion(loops, y.type).fromFloat(computed, y.as<uint16_t>() + begin, n);
  }

private:
  const FloatLoops &loops;
};

} // namespace dspark::norm_ops
