// The lanes of one vector become one number.
#pragma once
#include "kernels/common/vector_math.h"

namespace dspark::simd {
namespace {

/// Lane i joins the lane half a vector behind it, then a quarter, and so on, at every level: join(auto, auto)
/// of vectors or of numbers.
template <typename Join> DSPARK_SIMD float across(vf v, Join join) {
#if defined(__AVX512F__)
  v = join(v, __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7));
  v = join(v, __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3));
  v = join(v, __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13));
  return join(v, __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14))[0];
#else
  float lanes[kLanes];
  store(lanes, v);
  for (int half = kLanes / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i)
      lanes[i] = join(lanes[i], lanes[i + half]);
  return lanes[0];
#endif
}

} // namespace
} // namespace dspark::simd
