// The loops of pool_loops.h, included once per ISA level. NaN wins in a maximum, as in ONNX.
#pragma once
#include "kernels/common/contract.h"
#include "kernels/matmul/sums.h"
#include "kernels/pool/pool_loops.h"

namespace dspark {
namespace {

DSPARK_SIMD vf channelsAt(const float *x, int64_t lanes) {
  return lanes >= kLanes ? load(x) : loadLanes(x, lanes);
}
DSPARK_SIMD void storeChannels(float *y, vf value, int64_t lanes) {
  if (lanes >= kLanes)
    store(y, value);
  else
    storeLanes(y, value, lanes);
}

// V vectors of channels from c on; `lanes` < kLanes only when V is 1.
template <int V> DSPARK_SIMD void averageBlock(const PoolPixel &pixel, int64_t c, int64_t lanes) {
  vf sum[V] = {};
  for (int64_t tap = 0; tap < pixel.count; ++tap)
    unroll<V>(DSPARK_LAMBDA { sum[i] = sum[i] + channelsAt(pixel.taps[tap] + c + i * kLanes, lanes); });
  unroll<V>(DSPARK_LAMBDA { storeChannels(pixel.y + c + i * kLanes, sum[i] * pixel.scale, lanes); });
}

// The same of a maximum. A comparison alone may drop a NaN; a sum beside it, which costs as much, tells when
// there may have been one (or infinities of both signs), and then every comparison asks.
template <int V> DSPARK_SIMD void maxBlock(const PoolPixel &pixel, int64_t c, int64_t lanes) {
  vf most[V], sum[V] = {};
  unroll<V>(DSPARK_LAMBDA { most[i] = splat(-__builtin_inff()); });
  for (int64_t tap = 0; tap < pixel.count; ++tap)
    unroll<V>(DSPARK_LAMBDA {
      vf value = channelsAt(pixel.taps[tap] + c + i * kLanes, lanes);
      most[i] = select(value > most[i], value, most[i]);
      sum[i] = sum[i] + value;
    });
  vi suspect = {};
  unroll<V>(DSPARK_LAMBDA { suspect |= sum[i] != sum[i]; });
  if (__builtin_reduce_or(suspect) != 0)
    for (int64_t tap = 0; tap < pixel.count; ++tap)
      unroll<V>(DSPARK_LAMBDA {
        most[i] = simd::max(channelsAt(pixel.taps[tap] + c + i * kLanes, lanes), most[i]);
      });
  unroll<V>(DSPARK_LAMBDA { storeChannels(pixel.y + c + i * kLanes, most[i], lanes); });
}

template <bool isMax> void poolChannels(const PoolPixel &pixel) {
  constexpr int kWide = 4;
  auto block = [&]<int V>(int64_t c, int64_t lanes) __attribute__((always_inline)) {
    if constexpr (isMax)
      maxBlock<V>(pixel, c, lanes);
    else
      averageBlock<V>(pixel, c, lanes);
  };
  int64_t c = 0;
  for (; c + kWide * kLanes <= pixel.channels; c += kWide * kLanes)
    block.template operator()<kWide>(c, kLanes);
  for (; c < pixel.channels; c += kLanes)
    block.template operator()<1>(c, pixel.channels - c);
}

void poolPixelLoops(const PoolPixel &pixel) {
  DSPARK_EXPECTS(isReadable(pixel.taps, pixel.count) && isReadable(pixel.y, pixel.channels));
  pixel.kind == PoolKind::Max ? poolChannels<true>(pixel) : poolChannels<false>(pixel);
}

} // namespace
} // namespace dspark
