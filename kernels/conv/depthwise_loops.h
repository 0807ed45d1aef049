// The loops of depthwise.h, included once per ISA level:
//
//   for each block of P pixels, P <= 8 and nearly equal
//     for each vector of channels: P sums in registers
//       for each line: K weight vectors, and every input vector once, which meets all taps that read it
//
// so that multiply-adds, not loads, are the limit (3 x 3, stride 1, 8 pixels: 72 beside 39 loads). Blocks at
// the image's border leave out the columns outside. Kernels of other sizes, strides and dilations load an
// input for each tap, and take border pixels one by one.
#pragma once
#include "kernels/common/contract.h"
#include "kernels/conv/depthwise.h"
#include "kernels/matmul/activate_loops.h"

namespace dspark {
namespace {

// Eight sums cover the latency of the multiply-add and leave room for weights among AVX2's 16 registers.
constexpr int kPixels = sizeof(vf) < 32 ? 4 : 8;
#if defined(__AVX2__) && !defined(__AVX512F__)
constexpr int kChannelVectors = 1;
#else
constexpr int kChannelVectors = 2;
#endif

// Bias, residual, activation and store of P pixels from `pixel` on, of each of `Rows` output rows.
template <int P, int V, bool HasTail, int Rows = 1>
DSPARK_SIMD void storePixels(const DepthwiseRow &row, vf (&sum)[Rows * P][V], int64_t pixel, int64_t c,
                             int64_t lanes) {
  auto read = [&](const float *p)
                  __attribute__((always_inline)) { return HasTail ? loadLanes(p, lanes) : load(p); };
  auto place = [&](int i) __attribute__((always_inline)) {
    return (pixel + i / V % P) * row.allChannels + c + (i % V) * kLanes + (i / V / P) * row.nextRow;
  };
  if (row.bias)
    unroll<Rows * P * V>(
        DSPARK_LAMBDA { sum[i / V][i % V] = sum[i / V][i % V] + read(row.bias + c + (i % V) * kLanes); });
  if (row.residual)
    unroll<Rows * P * V>(
        DSPARK_LAMBDA { sum[i / V][i % V] = sum[i / V][i % V] + read(row.residual + place(i)); });
  activate(sum, row.epilogue);
  unroll<Rows * P * V>(DSPARK_LAMBDA {
    float *y = row.y + place(i);
    if (HasTail)
      storeLanes(y, sum[i / V][i % V], lanes);
    else
      store(y, sum[i / V][i % V]);
  });
}

// Taps [begin, end) of the innermost axis for P pixels from `pixel` on, channels from c on.
template <int P, int V, bool HasTail>
DSPARK_SIMD void pixelBlock(const DepthwiseRow &row, int64_t pixel, int64_t begin, int64_t end, int64_t c,
                            int64_t lanes) {
  auto read = [&](const float *p)
                  __attribute__((always_inline)) { return HasTail ? loadLanes(p, lanes) : load(p); };
  vf sum[P][V];
  each(sum, [](vf) { return splat(0); });
  int64_t step = row.stride * row.lineStep;
  for (int64_t line = 0; line < row.count; ++line) {
    const float *x =
        row.lines[line] + (pixel * row.stride - row.pad + begin * row.dilation) * row.lineStep + c;
    const float *w = row.w[line] + begin * row.allChannels + c;
    for (int64_t k = begin; k < end; ++k, x += row.dilation * row.lineStep, w += row.allChannels) {
      vf weight[V];
      unroll<V>(DSPARK_LAMBDA { weight[i] = read(w + i * kLanes); });
      unroll<P * V>(DSPARK_LAMBDA {
        sum[i / V][i % V] =
            fma(read(x + (i / V) * step + (i % V) * kLanes), weight[i % V], sum[i / V][i % V]);
      });
    }
  }
  storePixels<P, V, HasTail>(row, sum, pixel, c, lanes);
}

// P pixels of a kernel of K taps at stride S, both known. Sums take their taps in order. HasTail: fewer
// channels than lanes, which AVX-512 masks (4 to 10 % slower than whole vectors).
template <int K, int S, int P, bool HasTail, bool IsInside>
DSPARK_SIMD void slideBlock(const DepthwiseRow &row, int64_t pixel, int64_t c, int64_t lanes) {
  auto read = [&](const float *p)
                  __attribute__((always_inline)) { return HasTail ? loadLanes(p, lanes) : load(p); };
  int64_t first = pixel * S - row.pad;
  vf sum[P][1];
  each(sum, [](vf) { return splat(0); });
  for (int64_t line = 0; line < row.count; ++line) {
    const float *x = row.lines[line] + first * row.lineStep + c, *w = row.w[line] + c;
    vf weight[K];
    unroll<K>(DSPARK_LAMBDA { weight[i] = read(w + i * row.allChannels); });
    unroll<(P - 1) * S + K>([&](auto column) __attribute__((always_inline)) {
      if (!IsInside && uint64_t(first + column) >= uint64_t(row.inWidth))
        return;
      vf value = read(x + column * row.lineStep);
      unroll<P>(DSPARK_LAMBDA {
        constexpr int tap = decltype(column)::value - decltype(i)::value * S;
        if constexpr (tap >= 0 && tap < K)
          sum[i][0] = fma(value, weight[tap], sum[i][0]);
      });
    });
  }
  storePixels<P, 1, HasTail>(row, sum, pixel, c, lanes);
}

// The same for two output rows: lines that both read are loaded once, and so are the weights (3 x 3: 5 to 15
// % less time at stride 1, up to 9 at stride 2; 5 x 5 has too many weights).
template <int K, int S, int P, bool HasTail, bool IsInside>
DSPARK_SIMD void slideTwo(const DepthwiseRow &row, int64_t pixel, int64_t c, int64_t lanes) {
  auto read = [&](const float *p)
                  __attribute__((always_inline)) { return HasTail ? loadLanes(p, lanes) : load(p); };
  int64_t first = pixel * S - row.pad;
  vf sum[2 * P][1], weight[K][K];
  each(sum, [](vf) { return splat(0); });
  unroll<K>([&](auto line) __attribute__((always_inline)) {
    unroll<K>(DSPARK_LAMBDA { weight[line][i] = read(row.w[line] + i * row.allChannels + c); });
  });
  unroll<K + S>([&](auto line) __attribute__((always_inline)) {
    const float *x = row.lines[line] + first * row.lineStep + c;
    unroll<(P - 1) * S + K>([&](auto column) __attribute__((always_inline)) {
      if (!IsInside && uint64_t(first + column) >= uint64_t(row.inWidth))
        return;
      vf value = read(x + column * row.lineStep);
      unroll<P>(DSPARK_LAMBDA {
        constexpr int tap = decltype(column)::value - decltype(i)::value * S, l = decltype(line)::value;
        if constexpr (tap >= 0 && tap < K) {
          if constexpr (l < K)
            sum[i][0] = fma(value, weight[l][tap], sum[i][0]);
          if constexpr (l >= S)
            sum[P + i][0] = fma(value, weight[l - S][tap], sum[P + i][0]);
        }
      });
    });
  });
  storePixels<P, 1, HasTail, 2>(row, sum, pixel, c, lanes);
}

#if defined(__AVX512F__)
constexpr bool kMasksAll = true;
#else
constexpr bool kMasksAll = false;
#endif

template <int K, int S, int P, bool IsInside>
__attribute__((noinline)) void slideChannels(const DepthwiseRow &row, int64_t pixel) {
  int64_t c = 0;
  for (; c + kLanes <= row.channels; c += kLanes)
    slideBlock<K, S, P, false, IsInside>(row, pixel, c, kLanes);
  if (kMasksAll && c < row.channels)
    slideBlock<K, S, P, kMasksAll, IsInside>(row, pixel, c, row.channels - c);
}
// Not asking where columns lie makes AVX-512 2 to 19 % faster, and AVX2 up to 8 % slower.
template <int K, int S, int P> void slidePixels(const DepthwiseRow &row, int64_t pixel) {
  int64_t first = pixel * S - row.pad;
  if constexpr (kMasksAll)
    if (first >= 0 && first + (P - 1) * S + K <= row.inWidth)
      return slideChannels<K, S, P, true>(row, pixel);
  slideChannels<K, S, P, false>(row, pixel);
}
template <int K, int S, int P, bool IsInside>
__attribute__((noinline)) void twoChannels(const DepthwiseRow &row, int64_t pixel) {
  int64_t c = 0;
  for (; c + kLanes <= row.channels; c += kLanes)
    slideTwo<K, S, P, false, IsInside>(row, pixel, c, kLanes);
  if (c < row.channels)
    slideTwo<K, S, P, true, IsInside>(row, pixel, c, row.channels - c);
}
template <int K, int S, int P> void slideTwoPixels(const DepthwiseRow &row, int64_t pixel) {
  int64_t first = pixel * S - row.pad;
  (first >= 0 && first + (P - 1) * S + K <= row.inWidth ? twoChannels<K, S, P, true>
                                                        : twoChannels<K, S, P, false>)(row, pixel);
}
// The channels beyond the last whole vector, pixel by pixel.
template <int K, int S> __attribute__((noinline)) void slideTail(const DepthwiseRow &row) {
  int64_t c = row.channels / kLanes * kLanes;
  for (int64_t pixel = row.begin; c < row.channels && pixel < row.end; ++pixel)
    slideBlock<K, S, 1, true, false>(row, pixel, c, row.channels - c);
}

int64_t largeBlock(const DepthwiseRow &row) {
  int64_t pixels = row.end - row.begin;
  return pixels % 8 != 0 && pixels % 7 == 0 ? 7 : 8;
}

// Blocks of 8 or 7 pixels, whatever divides the row, and smaller ones for what is left.
template <int K, int S> void slideRow(const DepthwiseRow &row) {
  int64_t pixel = row.begin, large = largeBlock(row);
  while (int64_t left = row.end - pixel) {
    int64_t size = left >= large ? large : left >= 4 ? 4 : left >= 2 ? 2 : 1;
    (size == 8   ? slidePixels<K, S, 8>
     : size == 7 ? slidePixels<K, S, 7>
     : size == 4 ? slidePixels<K, S, 4>
     : size == 2 ? slidePixels<K, S, 2>
                 : slidePixels<K, S, 1>)(row, pixel);
    pixel += size;
  }
  if constexpr (!kMasksAll)
    slideTail<K, S>(row);
}

// Two rows in blocks of 8 or 7 pixels, and each of them alone in what is left.
template <int K, int S> void slideTwoRows(const DepthwiseRow &row) {
  DepthwiseRow rest = row;
  int64_t large = largeBlock(row);
  for (; row.end - rest.begin >= large; rest.begin += large)
    (large == 8 ? slideTwoPixels<K, S, 8> : slideTwoPixels<K, S, 7>)(row, rest.begin);
  rest.nextRow = 0;
  slideRow<K, S>(rest);
  rest.lines += S;
  rest.y += row.nextRow;
  if (row.residual)
    rest.residual += row.nextRow;
  slideRow<K, S>(rest);
}

template <int P>
__attribute__((noinline)) void pixels(const DepthwiseRow &row, int64_t pixel, int64_t begin, int64_t end) {
  int64_t c = 0;
  for (; c + kChannelVectors * kLanes <= row.channels; c += kChannelVectors * kLanes)
    pixelBlock<P, kChannelVectors, false>(row, pixel, begin, end, c, kLanes);
  for (; c < row.channels; c += kLanes)
    pixelBlock<P, 1, true>(row, pixel, begin, end, c, row.channels - c < kLanes ? row.channels - c : kLanes);
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

void anyRow(const DepthwiseRow &row) {
  int64_t reach = (row.kernel - 1) * row.dilation - row.pad; // of the last tap
  auto fits = [&](int64_t last) { return last < row.end && last * row.stride + reach < row.inWidth; };
  int64_t pixel = row.begin;
  while (pixel < row.end) {
    if (pixel * row.stride < row.pad) {
      borderPixel(row, pixel++);
    } else if (fits(pixel + kPixels - 1)) {
      pixels<kPixels>(row, pixel, 0, row.kernel);
      pixel += kPixels;
    } else if (fits(pixel + kPixels / 2 - 1)) {
      pixels<kPixels / 2>(row, pixel, 0, row.kernel);
      pixel += kPixels / 2;
    } else {
      borderPixel(row, pixel++);
    }
  }
}

void depthwiseRowLoops(const DepthwiseRow &row) {
  DSPARK_EXPECTS(row.count >= 0 && isReadable(row.lines, row.count) && isReadable(row.w, row.count));
  DSPARK_EXPECTS(row.kernel > 0 && row.stride > 0 && row.dilation > 0);
  DSPARK_EXPECTS(row.begin >= 0 && row.channels <= row.allChannels);
  DSPARK_EXPECTS(isReadable(row.y, (row.end - row.begin) * row.channels));
  if constexpr (kMasksAll)
    if (row.nextRow)
      return row.stride == 1 ? slideTwoRows<3, 1>(row) : slideTwoRows<3, 2>(row);
  bool isPlain = row.dilation == 1 && row.stride <= 2;
  if (isPlain && row.kernel == 3)
    return row.stride == 1 ? slideRow<3, 1>(row) : slideRow<3, 2>(row);
  if (isPlain && row.kernel == 5)
    return row.stride == 1 ? slideRow<5, 1>(row) : slideRow<5, 2>(row);
  anyRow(row);
}

} // namespace
} // namespace dspark
