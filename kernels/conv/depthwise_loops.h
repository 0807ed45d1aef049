// The loops of depthwise.h, included once per ISA level. Pixels outside, channels inside, so that input and
// output are walked in memory order:
//
//   for each block of P pixels, all of whose taps lie inside the image (others go one by one)
//     for each block of V vectors of channels: P x V sums in registers
//       for each tap: V weight vectors, P x V input vectors
#pragma once
#include "kernels/conv/depthwise.h"
#include "kernels/matmul/activate_loops.h"

namespace dspark {
namespace {

// Eight sums cover the latency of the multiply-add and leave room for weights among AVX2's 16 registers.
#if defined(__AVX512F__)
constexpr int kPixels = 8, kChannelVectors = 2;
#elif defined(__AVX2__)
constexpr int kPixels = 8, kChannelVectors = 1;
#else
constexpr int kPixels = 4, kChannelVectors = 2;
#endif

// Bias, residual, activation and store of P pixels from `pixel` on.
template <int P, int V>
DSPARK_SIMD void storePixels(const DepthwiseRow &row, vf (&sum)[P][V], int64_t pixel, int64_t c,
                             int64_t lanes) {
  bool isFull = lanes == kLanes;
  auto read = [&](const float *p)
                  __attribute__((always_inline)) { return V > 1 || isFull ? load(p) : loadLanes(p, lanes); };
  int64_t out = pixel * row.allChannels + c;
  if (row.bias)
    unroll<P * V>(
        DSPARK_LAMBDA { sum[i / V][i % V] = sum[i / V][i % V] + read(row.bias + c + (i % V) * kLanes); });
  if (row.residual)
    unroll<P * V>(DSPARK_LAMBDA {
      sum[i / V][i % V] =
          sum[i / V][i % V] + read(row.residual + out + (i / V) * row.allChannels + (i % V) * kLanes);
    });
  activate(sum, row.epilogue);
  unroll<P * V>(DSPARK_LAMBDA {
    float *y = row.y + out + (i / V) * row.allChannels + (i % V) * kLanes;
    if (V > 1 || isFull)
      store(y, sum[i / V][i % V]);
    else
      storeLanes(y, sum[i / V][i % V], lanes);
  });
}

// Taps [begin, end) of the innermost axis for P pixels from `pixel` on, channels from c on. `lanes` < kLanes
// only when V is 1.
template <int P, int V>
DSPARK_SIMD void pixelBlock(const DepthwiseRow &row, int64_t pixel, int64_t begin, int64_t end, int64_t c,
                            int64_t lanes) {
  bool isFull = lanes == kLanes;
  auto read = [&](const float *p)
                  __attribute__((always_inline)) { return V > 1 || isFull ? load(p) : loadLanes(p, lanes); };
  vf sum[P][V];
  each(sum, [](vf) { return splat(0); });
  int64_t step = row.stride * row.allChannels;
  for (int64_t line = 0; line < row.count; ++line) {
    const float *x =
        row.lines[line] + (pixel * row.stride - row.pad + begin * row.dilation) * row.allChannels + c;
    const float *w = row.w[line] + begin * row.allChannels + c;
    for (int64_t k = begin; k < end; ++k, x += row.dilation * row.allChannels, w += row.allChannels) {
      vf weight[V];
      unroll<V>(DSPARK_LAMBDA { weight[i] = read(w + i * kLanes); });
      unroll<P * V>(DSPARK_LAMBDA {
        sum[i / V][i % V] =
            fma(read(x + (i / V) * step + (i % V) * kLanes), weight[i % V], sum[i / V][i % V]);
      });
    }
  }
  storePixels(row, sum, pixel, c, lanes);
}

// The same for kernels of K taps at stride S, both known: each input vector is loaded once and meets all taps
// that read it, so that multiply-adds, not loads, are the limit. Sums still take their taps in order.
template <int K, int S, int P>
DSPARK_SIMD void slideBlock(const DepthwiseRow &row, int64_t pixel, int64_t c, int64_t lanes) {
  bool isFull = lanes == kLanes;
  auto read = [&](const float *p)
                  __attribute__((always_inline)) { return isFull ? load(p) : loadLanes(p, lanes); };
  vf sum[P][1];
  each(sum, [](vf) { return splat(0); });
  for (int64_t line = 0; line < row.count; ++line) {
    const float *x = row.lines[line] + (pixel * S - row.pad) * row.allChannels + c, *w = row.w[line] + c;
    vf weight[K];
    unroll<K>(DSPARK_LAMBDA { weight[i] = read(w + i * row.allChannels); });
    unroll<(P - 1) * S + K>([&](auto column) __attribute__((always_inline)) {
      vf value = read(x + column * row.allChannels);
      unroll<P>(DSPARK_LAMBDA {
        constexpr int tap = decltype(column)::value - decltype(i)::value * S;
        if constexpr (tap >= 0 && tap < K)
          sum[i][0] = fma(value, weight[tap], sum[i][0]);
      });
    });
  }
  storePixels(row, sum, pixel, c, lanes);
}

// Channels [from, to).
struct Chunk {
  int64_t from, to;
};

template <int P>
__attribute__((noinline)) void pixels(const DepthwiseRow &row, Chunk chunk, int64_t pixel, int64_t begin,
                                      int64_t end) {
  int64_t c = chunk.from;
  for (; c + kChannelVectors * kLanes <= chunk.to; c += kChannelVectors * kLanes)
    pixelBlock<P, kChannelVectors>(row, pixel, begin, end, c, kLanes);
  for (; c < chunk.to; c += kLanes)
    pixelBlock<P, 1>(row, pixel, begin, end, c, chunk.to - c < kLanes ? chunk.to - c : kLanes);
}

// Pixels whose taps reach outside leave those taps out.
void borderPixel(const DepthwiseRow &row, Chunk chunk, int64_t pixel) {
  int64_t first = pixel * row.stride - row.pad, begin = 0, end = row.kernel;
  while (begin < end && first + begin * row.dilation < 0)
    ++begin;
  while (begin < end && first + (end - 1) * row.dilation >= row.inWidth)
    --end;
  pixels<1>(row, chunk, pixel, begin, end);
}

// P inner pixels with all taps; K is 0 for kernels, strides and dilations that have no version of their own.
template <int K, int S, int P>
__attribute__((noinline)) void innerPixels(const DepthwiseRow &row, Chunk chunk, int64_t pixel) {
  if constexpr (K == 0)
    return pixels<P>(row, chunk, pixel, 0, row.kernel);
  else
    for (int64_t c = chunk.from; c < chunk.to; c += kLanes)
      slideBlock<K, S, P>(row, pixel, c, chunk.to - c < kLanes ? chunk.to - c : kLanes);
}

template <int K, int S> void chunkOfRow(const DepthwiseRow &row, Chunk chunk) {
  int64_t reach = (row.kernel - 1) * row.dilation - row.pad; // of the last tap
  auto fits = [&](int64_t last) { return last < row.outWidth && last * row.stride + reach < row.inWidth; };
  int64_t pixel = 0;
  while (pixel < row.outWidth) {
    if (pixel * row.stride < row.pad) {
      borderPixel(row, chunk, pixel++);
    } else if (fits(pixel + kPixels - 1)) {
      innerPixels<K, S, kPixels>(row, chunk, pixel);
      pixel += kPixels;
    } else if (fits(pixel + kPixels / 2 - 1)) {
      innerPixels<K, S, kPixels / 2>(row, chunk, pixel);
      pixel += kPixels / 2;
    } else {
      borderPixel(row, chunk, pixel++);
    }
  }
}

auto chunkFunction(const DepthwiseRow &row) {
  bool isPlain = row.dilation == 1 && row.stride <= 2;
  if (isPlain && row.kernel == 3)
    return row.stride == 1 ? chunkOfRow<3, 1> : chunkOfRow<3, 2>;
  if (isPlain && row.kernel == 5)
    return row.stride == 1 ? chunkOfRow<5, 1> : chunkOfRow<5, 2>;
  return chunkOfRow<0, 0>;
}

void depthwiseRowLoops(const DepthwiseRow &row) {
  constexpr int64_t kCacheFloats = 4096, kBlock = kChannelVectors * kLanes;
  int64_t pixelsRead = row.count * (kPixels * row.stride + row.kernel), size = kBlock;
  if (pixelsRead > 0 && kCacheFloats / pixelsRead > kBlock)
    size = kCacheFloats / pixelsRead / kBlock * kBlock;
  auto chunk = chunkFunction(row);
  for (int64_t c = 0; c < row.channels; c += size)
    chunk(row, {c, c + size < row.channels ? c + size : row.channels});
}

} // namespace
} // namespace dspark
