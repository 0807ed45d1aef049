// Included once per ISA level; see peak.h.
#pragma once
#include "bench/kernels/peak.h"
#include "kernels/common/vector_math.h"

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

} // namespace
} // namespace dspark::bench
