// The inner loops of f32 softmax and normalisations, one table per ISA level (float_norm_impl.h is compiled
// three times). Rows are contiguous; each is computed by one call, so results do not depend on tiles.
#pragma once
#include "kernels/common/isa.h"
#include <cstdint>

namespace dspark::norm_ops {

struct FloatNorm {
  /// y = exp(x - max) / sum, or x - max - log(sum).
  void (*softmaxRow)(const float *x, float *y, int64_t n, bool isLog);
  /// The same down the columns of x[size][stride], `width` neighbours at a time.
  void (*softmaxLanes)(const float *x, float *y, int64_t size, int64_t stride, int64_t width, bool isLog);
  /// The mean of a row and the mean of the squares of its elements minus `mean`.
  float (*mean)(const float *x, int64_t n);
  float (*meanSquare)(const float *x, int64_t n, float mean);
  /// y = (x - mean) * inverse, times scale[i], plus bias[i] where these are not null.
  void (*normalize)(const float *x, float *y, int64_t n, float mean, float inverse, const float *scale,
                    const float *bias);
  /// y = (x - shift) * scale + bias for a whole row.
  void (*scaleRow)(const float *x, float *y, int64_t n, float shift, float scale, float bias);
};

extern const FloatNorm kFloatNormBaseline, kFloatNormAvx2, kFloatNormAvx512;

inline const FloatNorm &floatNorm(Isa isa) {
  return isa == Isa::Avx512 ? kFloatNormAvx512 : isa == Isa::Avx2 ? kFloatNormAvx2 : kFloatNormBaseline;
}

} // namespace dspark::norm_ops
