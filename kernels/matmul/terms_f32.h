// Terms of f32 for gemm_loops.h.
#pragma once
#include "kernels/common/vector_math.h"

namespace dspark {
namespace {

DSPARK_SIMD simd::vf multiplyAdd(simd::vf x, simd::vf y, simd::vf sum) { return simd::fma(x, y, sum); }

} // namespace
} // namespace dspark
