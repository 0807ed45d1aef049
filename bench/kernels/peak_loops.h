// Included once per ISA level; see peak.h.
#pragma once
#include "bench/kernels/peak.h"
#include "kernels/common/vector_math.h"
#include <immintrin.h>

namespace dspark::bench {
namespace {

double measurePeak() {
  constexpr int kChains = 12, kRounds = 10000;
  simd::vf sums[kChains];
  for (simd::vf &sum : sums)
    sum = simd::splat(1);
  simd::vf factor = simd::splat(0.999f), term = simd::splat(0.001f);
  double best = 1e9;
  for (int attempt = 0; attempt < 4; ++attempt) {
    double begin = threadSeconds();
    for (int i = 0; i < kRounds; ++i) {
#pragma clang loop unroll(full)
      for (int c = 0; c < kChains; ++c)
        sums[c] = simd::fma(sums[c], factor, term);
      // Equal chains must not become one.
#pragma clang loop unroll(full)
      for (int c = 0; c < kChains; ++c)
        asm volatile("" : "+v"(sums[c]));
    }
    double time = threadSeconds() - begin;
    best = time < best ? time : best;
  }
  return 2.0 * kChains * kRounds * simd::kLanes / best;
}

// What an integer chain adds at a time: pairs of 16-bit products (exact for bytes), or bytes by the u8 x s8
// instruction, which needs a second multiplication to get to 32 bits below VNNI.
#if defined(__AVX512F__)
using Ints = __m512i;
DSPARK_SIMD Ints addPairs(Ints sum, Ints a, Ints b) { return _mm512_dpwssd_epi32(sum, a, b); }
DSPARK_SIMD Ints addBytes(Ints sum, Ints a, Ints b) { return _mm512_dpbusd_epi32(sum, a, b); }
#elif defined(__AVX2__)
using Ints = __m256i;
DSPARK_SIMD Ints addPairs(Ints sum, Ints a, Ints b) { return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b)); }
DSPARK_SIMD Ints addBytes(Ints sum, Ints a, Ints b) {
  return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(a, b), _mm256_set1_epi16(1)));
}
#else
using Ints = __m128i;
DSPARK_SIMD Ints addPairs(Ints sum, Ints a, Ints b) { return _mm_add_epi32(sum, _mm_madd_epi16(a, b)); }
DSPARK_SIMD Ints addBytes(Ints sum, Ints a, Ints b) {
  return addPairs(sum, a, b);
} // SSE2 has no such instruction
#endif

template <bool isBytes> double integerPeak() {
  constexpr int kChains = 12, kRounds = 5000;
  Ints sums[kChains] = {}, a = {}, b = {};
  double best = 1e9;
  for (int attempt = 0; attempt < 4; ++attempt) {
    double begin = threadSeconds();
    for (int i = 0; i < kRounds; ++i) {
      // New operands for every chain, as far as the compiler knows.
#pragma clang loop unroll(full)
      for (int c = 0; c < kChains; ++c) {
        asm volatile("" : "+v"(a), "+v"(b));
        sums[c] = isBytes ? addBytes(sums[c], a, b) : addPairs(sums[c], a, b);
      }
#pragma clang loop unroll(full)
      for (int c = 0; c < kChains; ++c)
        asm volatile("" : "+v"(sums[c]));
    }
    double time = threadSeconds() - begin;
    best = time < best ? time : best;
  }
  constexpr bool hasBytes = sizeof(Ints) > 16;
  return 2.0 * kChains * kRounds * double(sizeof(Ints)) / (isBytes && hasBytes ? 1 : 2) / best;
}
double integerPeakOf(bool isBytes) { return isBytes ? integerPeak<true>() : integerPeak<false>(); }

} // namespace
} // namespace dspark::bench
