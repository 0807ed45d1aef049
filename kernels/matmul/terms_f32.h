// Terms of f32 for gemm_loops.h.
#pragma once
#include "kernels/matmul/half_vectors.h"

namespace dspark {
namespace {

DSPARK_SIMD vf multiplyAdd(vf x, vf y, vf sum) { return fma(x, y, sum); }

// sum + x * row. Compilers would make both widths' vectors of x from one load, with more instructions and
// registers than the two loads.
DSPARK_SIMD void addHalf(vh &sum, const float *x, vh row) {
#if defined(__AVX512F__)
  asm("vfmadd231ps %2%{1to8%}, %1, %0" : "+v"(sum) : "v"(row), "m"(*x));
#else
  sum += *x * row;
#endif
}

} // namespace
} // namespace dspark
