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

#if defined(__AVX2__)
constexpr int kPixels = 6, kChannelVectors = 2;
#else
constexpr int kPixels = 4, kChannelVectors = 2;
#endif

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

template <int P>
__attribute__((noinline)) void pixels(const DepthwiseRow &row, int64_t pixel, int64_t begin, int64_t end) {
  int64_t c = 0;
  for (; c + kChannelVectors * kLanes <= row.channels; c += kChannelVectors * kLanes)
    pixelBlock<P, kChannelVectors>(row, pixel, begin, end, c, kLanes);
  for (; c < row.channels; c += kLanes)
    pixelBlock<P, 1>(row, pixel, begin, end, c, row.channels - c < kLanes ? row.channels - c : kLanes);
}

// Pixels whose taps reach outside leave those taps out.
void borderPixel(const DepthwiseRow &row, int64_t pixel) {
  int64_t first = pixel * row.stride - row.pad, begin = 0, end = row.kernel;
  while (begin < end && first + begin * row.dilation < 0)
    ++begin;
  while (begin < end && first + (end - 1) * row.dilation >= row.inWidth)
    --end;
  pixels<1>(row, pixel, begin, end);
}

void depthwiseRowLoops(const DepthwiseRow &row) {
  int64_t reach = (row.kernel - 1) * row.dilation - row.pad; // of the last tap
  int64_t pixel = 0;
  while (pixel < row.outWidth) {
    int64_t last = pixel + kPixels - 1;
    if (pixel * row.stride < row.pad) {
      borderPixel(row, pixel++);
    } else if (last < row.outWidth && last * row.stride + reach < row.inWidth) {
      pixels<kPixels>(row, pixel, 0, row.kernel);
      pixel += kPixels;
    } else {
      borderPixel(row, pixel++);
    }
  }
}

} // namespace
} // namespace dspark
