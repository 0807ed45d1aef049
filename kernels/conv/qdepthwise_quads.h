// QDepthwiseColumns by vpdpbusd: a column's bytes are interleaved to quads of four lines, which meet all K
// weights of their column while K / S sums are under way:
//
//   for each input column, K and S unrolled
//     for each four lines of the kernel: 8 interleavings of 64 channels, 4 products per tap
//     an output whose last column this was is scaled and stored
//
// 3 x 3, stride 1, 64 channels: 8 interleavings and 12 products beside 20 instructions that make bytes of the
// sums, which come out in the order that packing them undoes.
#pragma once
#include "kernels/common/quad_bytes.h"
#include "kernels/conv/qdepthwise.h"
#include "kernels/matmul/igemm_sums.h"

namespace dspark {
namespace {

template <int C> using Channels = simd::Quads<C>;

// Sums in the order of channels.
template <int C>
DSPARK_SIMD void storeInOrder(const typename Channels<C>::Vector (&sums)[4], int32_t (&out)[C]) {
  int32_t lanes[4][C / 4];
  __builtin_memcpy(lanes, sums, sizeof(lanes));
  for (int j = 0; j < C; ++j)
    out[j] = lanes[j % 16 / 4][j / 16 * 4 + j % 4];
}

template <int C>
__attribute__((noinline)) void putFloats(const typename Channels<C>::Vector (&sums)[4],
                                         const SumsResult *results, int64_t pixel) {
  int32_t ordered[C];
  storeInOrder<C>(sums, ordered);
  for (int block = 0; block < C / kIntegerColumns; ++block) {
    SumRow values;
    __builtin_memcpy(&values, ordered + block * kIntegerColumns, sizeof(values));
    ResultRows(results[block]).toFloats(values, pixel);
  }
}

template <int K, int S, int C, bool isFloat> void columnsRow(const QDepthwiseColumns &given) {
  using Q = Channels<C>;
  using Vector = typename Q::Vector;
  constexpr int kGroups = (K + 3) / 4, kOutputs = (K + S - 1) / S, kPeriod = kOutputs * S;
  const QDepthwiseColumns row = given; // a copy, which stores to y cannot change
  const SumsResult to = row.results[0];
  const simd::QuadNarrowing<C> narrow(to.range);
  const Vector flip = Q::splat8(row.isSigned ? -128 : 0);
  const std::byte *at[K];
  for (int line = 0; line < K; ++line)
    at[line] = row.lines[line];
  Vector sums[kOutputs][4], weights[K == 3 ? 12 : 1];
  if constexpr (K == 3)
    unroll<12>(DSPARK_LAMBDA { weights[i] = Q::load(row.w + i * C); });

  auto put = [&](const Vector(&sum)[4], int64_t pixel) __attribute__((always_inline)) {
    if constexpr (isFloat) {
      Vector copy[4]; // so that the sums themselves stay in registers
      unroll<4>(DSPARK_LAMBDA { copy[i] = sum[i]; });
      return putFloats<C>(copy, row.results, pixel);
    }
    typename Q::Floats value[4];
    unroll<4>(DSPARK_LAMBDA {
      value[i] = Q::floats(sum[i]) * Q::loadFloats(row.scale + i * (C / 4)) +
                 Q::loadFloats(row.offset + i * (C / 4));
    });
    Q::store(to.bytes + pixel * to.stride, narrow(value));
  };

  int64_t columns = (row.pixels - 1) * S + K;
  for (int64_t first = 0; first < columns; first += kPeriod)
    unroll<kPeriod>([&](auto i) __attribute__((always_inline)) {
      int64_t column = first + i;
      if (column >= columns)
        return;
      bool isInside = uint64_t(row.column + column) < uint64_t(row.width);
      unroll<kGroups>([&](auto group) __attribute__((always_inline)) {
        constexpr int kLine = 4 * decltype(group)::value;
        Vector lines[4], quads[4];
        unroll<4>([&](auto line) __attribute__((always_inline)) {
          if constexpr (kLine + decltype(line)::value < K) {
            lines[line] = Q::exclusiveOr(flip, Q::load(isInside ? at[kLine + line] : row.padding));
          } else {
            lines[line] = Q::zero();
          }
        });
        simd::interleave<C>(lines, quads);
        unroll<K>([&](auto tap) __attribute__((always_inline)) {
          constexpr int kTap = decltype(tap)::value, kColumn = decltype(i)::value;
          if constexpr (kTap % S == kColumn % S) {
            constexpr int kOutput = (kColumn / S - kTap / S + kOutputs) % kOutputs;
            constexpr int kWeight = (kTap * kGroups + decltype(group)::value) * 4;
            unroll<4>([&](auto q) __attribute__((always_inline)) {
              bool isFirst = kTap == 0 && kLine == 0;
              Vector sum = isFirst ? Q::load(row.start + q * (C / 4)) : sums[kOutput][q];
              Vector w = K == 3 ? weights[K == 3 ? kWeight + q : 0] : Q::load(row.w + (kWeight + q) * C);
              sums[kOutput][q] = Q::dot(sum, quads[q], w);
            });
          }
        });
      });
      for (int line = 0; line < K; ++line)
        at[line] += row.steps[line];
      if constexpr ((K - 1) % S == decltype(i)::value % S)
        if (column >= K - 1)
          put(sums[(i / S - (K - 1) / S + kOutputs) % kOutputs], (column - (K - 1)) / S);
    });
}

template <int C> void turnColumns(const QDepthwiseWeights &weights) {
  using Q = Channels<C>;
  int64_t kernel = weights.kernel, groups = (kernel + 3) / 4;
  auto zero = Q::splat8(int8_t(weights.zero));
  typename Q::Vector sums[4] = {Q::zero(), Q::zero(), Q::zero(), Q::zero()};
  std::byte *to = weights.to;
  for (int64_t tap = 0; tap < kernel; ++tap)
    for (int64_t group = 0; group < groups; ++group, to += 4 * C) {
      typename Q::Vector lines[4], quads[4];
      for (int64_t line = 0; line < 4; ++line)
        lines[line] = group * 4 + line < kernel
                          ? Q::load(weights.w + ((group * 4 + line) * kernel + tap) * weights.step)
                          : Q::zero();
      simd::interleave<C>(lines, quads);
      for (int q = 0; q < 4; ++q) {
        Q::store(to + q * C, quads[q]);
        sums[q] = Q::dot(sums[q], zero, quads[q]);
      }
    }
  for (int q = 0; q < 4; ++q)
    Q::store(weights.start + q * (C / 4), Q::subtract(Q::zero(), sums[q]));
}

template <int K, int S, bool isFloat> void columnsOf(const QDepthwiseColumns &row) {
  row.channels == 64   ? columnsRow<K, S, 64, isFloat>(row)
  : row.channels == 32 ? columnsRow<K, S, 32, isFloat>(row)
                       : columnsRow<K, S, 16, isFloat>(row);
}
template <bool isFloat> void columnsOf(const QDepthwiseColumns &row) {
  if (row.kernel == 3)
    return row.stride == 1 ? columnsOf<3, 1, isFloat>(row) : columnsOf<3, 2, isFloat>(row);
  return row.stride == 1 ? columnsOf<5, 1, isFloat>(row) : columnsOf<5, 2, isFloat>(row);
}

void depthwiseColumns(const QDepthwiseColumns &row) {
  DSPARK_EXPECTS((row.kernel == 3 || row.kernel == 5) && (row.stride == 1 || row.stride == 2));
  DSPARK_EXPECTS(row.channels == 64 || row.channels == 32 || row.channels == 16);
  DSPARK_EXPECTS(row.pixels > 0);
  row.results->floats ? columnsOf<true>(row) : columnsOf<false>(row);
}
void depthwiseWeights(const QDepthwiseWeights &weights) {
  weights.channels == 64   ? turnColumns<64>(weights)
  : weights.channels == 32 ? turnColumns<32>(weights)
                           : turnColumns<16>(weights);
}

} // namespace
} // namespace dspark
