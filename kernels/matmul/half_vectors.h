// Vectors of half the lanes, for the columns of half a panel.
#pragma once
#include "kernels/common/vector_math.h"

namespace dspark {
namespace {

using namespace simd;

typedef float vh __attribute__((ext_vector_type(kLanes / 2)));
DSPARK_SIMD vh loadHalf(const float *p) {
  vh v;
  __builtin_memcpy(&v, p, sizeof(v));
  return v;
}

} // namespace
} // namespace dspark
