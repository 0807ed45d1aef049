// Included once per ISA level; see bandwidth.h.
#pragma once
#include "bench/kernels/bandwidth.h"
#include "kernels/common/vector_math.h"

namespace dspark::bench {
namespace {

using namespace simd;

// Eight loads, or four loads and stores, per turn; the sums keep the loads alive.
float readBytes(const float *from, int64_t bytes) {
  vf sums[8] = {};
  for (int64_t i = 0, n = bytes / 4; i + 8 * kLanes <= n; i += 8 * kLanes)
    for (int v = 0; v < 8; ++v)
      sums[v] += load(from + i + v * kLanes);
  vf sum = sums[0];
  for (int v = 1; v < 8; ++v)
    sum += sums[v];
  return sum[0];
}
void copyBytes(const float *from, float *to, int64_t bytes) {
  for (int64_t i = 0, n = bytes / 4; i + 4 * kLanes <= n; i += 4 * kLanes)
    for (int v = 0; v < 4; ++v)
      store(to + i + v * kLanes, load(from + i + v * kLanes));
}
void fillBytes(float *to, int64_t bytes) {
  vf one = splat(1);
  for (int64_t i = 0, n = bytes / 4; i + 4 * kLanes <= n; i += 4 * kLanes)
    for (int v = 0; v < 4; ++v)
      store(to + i + v * kLanes, one);
}

} // namespace
} // namespace dspark::bench
