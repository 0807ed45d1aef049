// Runs of any floating-point type as f32, for kernels whose loops are f32: an f32 run is used where it lies,
// others pass through a buffer of the thread's scratch.
#pragma once
#include "kernels/common/element.h"
#include "kernels/common/kernel.h"

namespace dspark::norm_ops {

/// Elements [begin, begin + n) of x; `buffer` has room for n.
inline const float *loadRow(const TensorView &x, int64_t begin, int64_t n, float *buffer) {
  if (x.type == DType::F32)
    return x.as<const float>() + begin;
  dispatchFloat(x.type, [&]<typename T>() {
    for (int64_t i = 0; i < n; ++i)
      buffer[i] = float(x.as<const T>()[begin + i]);
  });
  return buffer;
}

/// Where to compute elements [begin, begin + n) of y: in place if it is f32, else in the buffer.
inline float *rowTarget(const TensorView &y, int64_t begin, float *buffer) {
  return y.type == DType::F32 ? y.as<float>() + begin : buffer;
}
/// Rounds what was computed there into y.
inline void storeRow(const TensorView &y, int64_t begin, int64_t n, const float *computed) {
  if (y.type == DType::F32)
    return;
  dispatchFloat(y.type, [&]<typename T>() {
    for (int64_t i = 0; i < n; ++i)
      y.as<T>()[begin + i] = T(computed[i]);
  });
}

} // namespace dspark::norm_ops
