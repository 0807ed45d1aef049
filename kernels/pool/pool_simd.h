// The loops of pool_loops.h, included once per ISA level. NaN wins in a maximum, as in ONNX.
#pragma once
#include "kernels/matmul/sums.h"
#include "kernels/pool/pool_loops.h"

namespace dspark {
namespace {

// V vectors of channels from c on; `lanes` < kLanes only when V is 1.
template <int V> DSPARK_SIMD void channelBlock(const PoolPixel &pixel, int64_t c, int64_t lanes) {
  bool isFull = V > 1 || lanes == kLanes;
  bool isMax = pixel.kind == PoolKind::Max;
  vf sum[V];
  unroll<V>(DSPARK_LAMBDA { sum[i] = splat(isMax ? -__builtin_inff() : 0); });
  for (int64_t tap = 0; tap < pixel.count; ++tap)
    unroll<V>(DSPARK_LAMBDA {
      const float *x = pixel.taps[tap] + c + i * kLanes;
      vf value = isFull ? load(x) : loadLanes(x, lanes);
      sum[i] = isMax ? simd::max(value, sum[i]) : sum[i] + value;
    });
  unroll<V>(DSPARK_LAMBDA {
    vf value = isMax ? sum[i] : sum[i] * pixel.scale;
    float *y = pixel.y + c + i * kLanes;
    if (isFull)
      store(y, value);
    else
      storeLanes(y, value, lanes);
  });
}

void poolPixelLoops(const PoolPixel &pixel) {
  constexpr int kWide = 4;
  int64_t c = 0;
  for (; c + kWide * kLanes <= pixel.channels; c += kWide * kLanes)
    channelBlock<kWide>(pixel, c, kLanes);
  for (; c < pixel.channels; c += kLanes)
    channelBlock<1>(pixel, c, pixel.channels - c < kLanes ? pixel.channels - c : kLanes);
}

} // namespace
} // namespace dspark
