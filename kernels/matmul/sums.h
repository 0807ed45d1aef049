// Sums in registers: an array of vectors that every step unrolls over, partial loads and stores, and the
// activations of a contraction's epilogue. Included once per ISA level.
#pragma once
#include "kernels/common/vector_math.h"
#include <utility>

namespace dspark {
namespace {

using namespace simd;

// f(0), f(1) ... f(N - 1), with indices that are constants from the start: loops that are only unrolled later
// leave AVX-512's sums in memory.
template <typename F, int... I> DSPARK_SIMD void unrolled(F f, std::integer_sequence<int, I...>) {
  (f(std::integral_constant<int, I>()), ...);
}
template <int N, typename F> DSPARK_SIMD void unroll(F f) {
  unrolled(f, std::make_integer_sequence<int, N>());
}
#define DSPARK_LAMBDA [&](auto i) __attribute__((always_inline))

// Every sum of a register tile: i counts rows times vectors.
template <int R, int V, typename F> DSPARK_SIMD void each(vf (&sum)[R][V], F f) {
  unroll<R * V>(DSPARK_LAMBDA { sum[i / V][i % V] = f(sum[i / V][i % V]); });
}

// The first n lanes of unaligned memory, 0 <= n <= kLanes.
#if defined(__AVX512F__)
DSPARK_SIMD __mmask16 laneMask(int64_t n) { return __mmask16((1u << n) - 1); }
DSPARK_SIMD vf loadLanes(const float *p, int64_t n) { return vf(_mm512_maskz_loadu_ps(laneMask(n), p)); }
DSPARK_SIMD void storeLanes(float *p, vf v, int64_t n) { _mm512_mask_storeu_ps(p, laneMask(n), __m512(v)); }
#elif defined(__AVX2__)
DSPARK_SIMD __m256i laneMask(int64_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(int(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
DSPARK_SIMD vf loadLanes(const float *p, int64_t n) { return vf(_mm256_maskload_ps(p, laneMask(n))); }
DSPARK_SIMD void storeLanes(float *p, vf v, int64_t n) { _mm256_maskstore_ps(p, laneMask(n), __m256(v)); }
#else
DSPARK_SIMD vf loadLanes(const float *p, int64_t n) { return loadPart(p, n); }
DSPARK_SIMD void storeLanes(float *p, vf v, int64_t n) { storePart(p, v, n); }
#endif

} // namespace
} // namespace dspark
