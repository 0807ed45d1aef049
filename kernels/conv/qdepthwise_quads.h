// QDepthwiseColumns by vpdpbusd: a column's bytes are interleaved to quads of four lines, which meet all K
// weights of their column while K / S sums are under way:
//
//   for each input column, K and S unrolled
//     for each four lines of the kernel: 8 interleavings of 64 bytes, 4 products per tap
//     an output whose last column this was is scaled and stored
//
// 3 x 3, stride 1: 8 interleavings and 12 products beside 25 instructions that make bytes of the sums, which
// come out in the order that packing them undoes. Blocks of fewer channels take two or four parts of the row
// at a time, which fill the vectors; parts overlap where they do not divide it.
#pragma once
#include "kernels/common/quad_bytes.h"
#include "kernels/conv/qdepthwise.h"
#include "kernels/matmul/igemm_sums.h"

namespace dspark {
namespace {

// A vector's bytes from and to the parts of a row, C of each.
template <int C, typename At> DSPARK_SIMD __m512i loadParts(At at) {
  if constexpr (C == 64)
    return _mm512_loadu_si512(at(0));
  auto half = [&](int i) __attribute__((always_inline)) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i *>(at(i)));
  };
  auto quarter = [&](int i) __attribute__((always_inline)) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i *>(at(i)));
  };
  if constexpr (C == 32)
    return _mm512_inserti64x4(_mm512_castsi256_si512(half(0)), half(1), 1);
  __m512i v = _mm512_inserti32x4(_mm512_castsi128_si512(quarter(0)), quarter(1), 1);
  return _mm512_inserti32x4(_mm512_inserti32x4(v, quarter(2), 2), quarter(3), 3);
}
template <int C, typename At> DSPARK_SIMD void storeParts(__m512i bytes, At at) {
  if constexpr (C == 64)
    _mm512_storeu_si512(at(0), bytes);
  if constexpr (C == 32)
    unroll<2>(DSPARK_LAMBDA {
      _mm256_storeu_si256(reinterpret_cast<__m256i *>(at(i)), _mm512_extracti64x4_epi64(bytes, i));
    });
  if constexpr (C == 16)
    unroll<4>(DSPARK_LAMBDA {
      _mm_storeu_si128(reinterpret_cast<__m128i *>(at(i)), _mm512_extracti32x4_epi32(bytes, i));
    });
}

// Of the outputs at `pixel` of each part.
template <int C>
__attribute__((noinline)) void putFloats(const __m512i (&sums)[4], const SumsResult *results, int64_t pixel,
                                         const int64_t *firstPixel) {
  int32_t lanes[64];
  __builtin_memcpy(lanes, sums, sizeof(lanes));
  for (int64_t block = 0; block < 4; ++block) {
    int32_t ordered[kIntegerColumns];
    for (int64_t j = 0; j < kIntegerColumns; ++j)
      ordered[j] = lanes[depthwisePlace(block * kIntegerColumns + j)];
    SumRow values;
    __builtin_memcpy(&values, ordered, sizeof(values));
    constexpr int64_t kBlocks = C / kIntegerColumns; // of a part
    ResultRows(results[block % kBlocks]).toFloats(values, pixel + firstPixel[block / kBlocks]);
  }
}

template <int K, int S, int C, bool isFloat> void columnsRow(const QDepthwiseColumns &given) {
  constexpr int kGroups = (K + 3) / 4, kOutputs = (K + S - 1) / S, kPeriod = kOutputs * S, kParts = 64 / C;
  const QDepthwiseColumns row = given; // a copy, which stores to y cannot change
  const SumsResult to = row.results[0];
  const simd::QuadNarrowing narrow(to.range);
  const __m512i flip = _mm512_set1_epi8(row.isSigned ? -128 : 0);
  const int64_t pixels = (row.pixels + kParts - 1) / kParts; // of a part
  int64_t firstPixel[kParts], distance[kParts][K];           // of a part from the first one
  const std::byte *at[K];
  for (int part = 0; part < kParts; ++part) {
    int64_t last = row.pixels - pixels;
    firstPixel[part] = part * pixels < last ? part * pixels : last;
    for (int line = 0; line < K; ++line)
      distance[part][line] = firstPixel[part] * S * row.steps[line];
  }
  for (int line = 0; line < K; ++line)
    at[line] = row.lines[line];
  __m512i sums[kOutputs][4], weights[K == 3 ? 12 : 1];
  if constexpr (K == 3)
    unroll<12>(DSPARK_LAMBDA { weights[i] = _mm512_loadu_si512(row.w + i * 64); });

  auto put = [&](const __m512i(&sum)[4], int64_t pixel) __attribute__((always_inline)) {
    if constexpr (isFloat) {
      __m512i copy[4]; // so that the sums themselves stay in registers
      unroll<4>(DSPARK_LAMBDA { copy[i] = sum[i]; });
      return putFloats<C>(copy, row.results, pixel, firstPixel);
    }
    __m512 value[4];
    unroll<4>(DSPARK_LAMBDA {
      value[i] = _mm512_cvtepi32_ps(sum[i]) * _mm512_loadu_ps(row.scale + i * 16) +
                 _mm512_loadu_ps(row.offset + i * 16);
    });
    storeParts<C>(narrow(value), [&](int part) __attribute__((always_inline)) {
      return to.bytes + (pixel + (part > 0 ? firstPixel[part] : 0)) * to.stride;
    });
  };

  int64_t columns = (pixels - 1) * S + K;
  for (int64_t first = 0; first < columns; first += kPeriod)
    unroll<kPeriod>([&](auto i) __attribute__((always_inline)) {
      int64_t column = first + i;
      if (column >= columns)
        return;
      bool isInside[kParts];
      unroll<kParts>([&](auto part) __attribute__((always_inline)) {
        int64_t from = row.column + (part > 0 ? firstPixel[part] * S : 0);
        isInside[part] = uint64_t(from + column) < uint64_t(row.width);
      });
      unroll<kGroups>([&](auto group) __attribute__((always_inline)) {
        constexpr int kLine = 4 * decltype(group)::value;
        __m512i lines[4], quads[4];
        unroll<4>([&](auto line) __attribute__((always_inline)) {
          if constexpr (kLine + decltype(line)::value < K)
            lines[line] = _mm512_xor_si512(flip, loadParts<C>([&](int part) __attribute__((always_inline)) {
                                             const std::byte *from = at[kLine + line];
                                             return !isInside[part] ? row.padding
                                                    : part > 0      ? from + distance[part][kLine + line]
                                                                    : from;
                                           }));
          else
            lines[line] = _mm512_setzero_si512();
        });
        simd::interleave(lines, quads);
        unroll<K>([&](auto tap) __attribute__((always_inline)) {
          constexpr int kTap = decltype(tap)::value, kColumn = decltype(i)::value;
          if constexpr (kTap % S == kColumn % S) {
            constexpr int kOutput = (kColumn / S - kTap / S + kOutputs) % kOutputs;
            constexpr int kWeight = (kTap * kGroups + decltype(group)::value) * 4;
            unroll<4>([&](auto q) __attribute__((always_inline)) {
              bool isFirst = kTap == 0 && kLine == 0;
              __m512i sum = isFirst ? _mm512_loadu_si512(row.start + q * 16) : sums[kOutput][q],
                      w = K == 3 ? weights[K == 3 ? kWeight + q : 0]
                                 : _mm512_loadu_si512(row.w + (kWeight + q) * 64);
              sums[kOutput][q] = _mm512_dpbusd_epi32(sum, quads[q], w);
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

template <int C> void turnWeights(const QDepthwiseWeights &weights) {
  int64_t kernel = weights.kernel, groups = (kernel + 3) / 4;
  const __m512i zero = _mm512_set1_epi8(int8_t(weights.zero));
  __m512i sums[4] = {};
  std::byte *to = weights.to;
  for (int64_t tap = 0; tap < kernel; ++tap)
    for (int64_t group = 0; group < groups; ++group, to += 256) {
      __m512i lines[4], quads[4];
      for (int64_t line = 0; line < 4; ++line) {
        const int8_t *from = weights.w + ((group * 4 + line) * kernel + tap) * weights.step;
        lines[line] =
            group * 4 + line < kernel ? loadParts<C>([&](int) { return from; }) : _mm512_setzero_si512();
      }
      simd::interleave(lines, quads);
      for (int q = 0; q < 4; ++q) {
        _mm512_storeu_si512(to + q * 64, quads[q]);
        sums[q] = _mm512_dpbusd_epi32(sums[q], zero, quads[q]);
      }
    }
  for (int q = 0; q < 4; ++q)
    _mm512_storeu_si512(weights.start + q * 16, _mm512_sub_epi32(_mm512_setzero_si512(), sums[q]));
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
  weights.channels == 64   ? turnWeights<64>(weights)
  : weights.channels == 32 ? turnWeights<32>(weights)
                           : turnWeights<16>(weights);
}

} // namespace
} // namespace dspark
