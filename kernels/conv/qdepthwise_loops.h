// The loops of qdepthwise.h, included once per ISA level; AVX-512 has the multiply-add of pairs that adds
// too.
#pragma once
#include "kernels/conv/qdepthwise.h"
#include "kernels/matmul/igemm_sums.h"

namespace dspark {
namespace {

#if defined(__AVX2__)
template <bool isSigned> inline __m256i widen(const std::byte *x) {
  __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i *>(x));
  return isSigned ? _mm256_cvtepi8_epi16(bytes) : _mm256_cvtepu8_epi16(bytes);
}
inline __m256i addPair(__m256i sum, __m256i x, const int16_t *w) {
  __m256i weights = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(w));
#if defined(__AVX512VNNI__)
  return _mm256_dpwssd_epi32(sum, x, weights);
#else
  return _mm256_add_epi32(sum, _mm256_madd_epi16(x, weights));
#endif
}

// Interleaving two vectors works within halves of registers: a block's groups of four channels come out in
// order 0 2 1 3, which is how the weights are placed.
int place(int j) { return j / 4 == 1 ? j + 4 : j / 4 == 2 ? j - 4 : j; }

// P outputs that follow each other share what is read of the weights.
template <bool isSigned, int P>
DSPARK_SIMD void sumPixels(const QDepthwiseRow &row, int64_t pixel, const __m256i (&start)[2],
                           SumRow (&out)[P]) {
  __m256i sums[P][2];
#pragma clang loop unroll(full)
  for (int p = 0; p < P; ++p)
    sums[p][0] = start[0], sums[p][1] = start[1];
  const std::byte *const *taps = row.taps + pixel * row.tapStep;
  int64_t at = row.channel + pixel * row.byteStep;
  const int16_t *w = row.w;
  for (int64_t pair = 0; pair < row.pairs; ++pair, w += 32)
#pragma clang loop unroll(full)
    for (int p = 0; p < P; ++p) {
      const std::byte *const *tap = taps + p * row.tapStep + 2 * pair;
      __m256i a = widen<isSigned>(tap[0] + at + p * row.byteStep),
              b = widen<isSigned>(tap[1] + at + p * row.byteStep);
      sums[p][0] = addPair(sums[p][0], _mm256_unpacklo_epi16(a, b), w);
      sums[p][1] = addPair(sums[p][1], _mm256_unpackhi_epi16(a, b), w + 16);
    }
#pragma clang loop unroll(full)
  for (int p = 0; p < P; ++p) {
    __m256i ordered[2] = {_mm256_permute2x128_si256(sums[p][0], sums[p][1], 0x20),
                          _mm256_permute2x128_si256(sums[p][0], sums[p][1], 0x31)};
    __builtin_memcpy(&out[p], ordered, sizeof(ordered));
  }
}

template <bool isSigned> void fullRow(const QDepthwiseRow &given) {
  const QDepthwiseRow row = given; // a copy, which stores to y cannot change
  const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(row.start)),
                high = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(row.start + 8));
  const __m256i start[2] = {_mm256_permute2x128_si256(low, high, 0x20),
                            _mm256_permute2x128_si256(low, high, 0x31)};
  constexpr int kPixels = 2;
  SumRow sums[kPixels], one[1];
  if (row.sums) {
    sumPixels<isSigned, 1>(row, 0, start, one);
    __builtin_memcpy(row.sums, one, sizeof(one));
    return;
  }
  const ResultRows rows(*row.result);
  const bool isFloat = row.result->floats != nullptr;
  auto put = [&](const SumRow &sum, int64_t pixel) __attribute__((always_inline)) {
    isFloat ? rows.toFloats(sum, pixel) : rows.toBytes(sum, pixel);
  };
  int64_t pixel = 0;
  for (; pixel + kPixels <= row.pixels; pixel += kPixels) {
    sumPixels<isSigned, kPixels>(row, pixel, start, sums);
    for (int p = 0; p < kPixels; ++p)
      put(sums[p], pixel + p);
  }
  for (; pixel < row.pixels; ++pixel) {
    sumPixels<isSigned, 1>(row, pixel, start, one);
    put(one[0], pixel);
  }
}
#else
int place(int j) { return j; }
#endif

template <typename T> void anyRow(const QDepthwiseRow &row) {
  for (int64_t p = 0; p < row.pixels; ++p) {
    const std::byte *const *taps = row.taps + p * row.tapStep;
    int64_t at = row.channel + p * row.byteStep;
    int32_t sums[kDepthwiseChannels];
    __builtin_memcpy(sums, row.start, sizeof(sums));
    for (int64_t pair = 0; pair < row.pairs; ++pair) {
      const T *a = reinterpret_cast<const T *>(taps[2 * pair] + at),
              *b = reinterpret_cast<const T *>(taps[2 * pair + 1] + at);
      const int16_t *w = row.w + pair * 2 * kDepthwiseChannels;
      for (int64_t j = 0; j < row.channels; ++j) {
        const int16_t *both = w + 2 * place(int(j));
        sums[j] += a[j] * both[0] + b[j] * both[1];
      }
    }
    if (row.sums) {
      __builtin_memcpy(row.sums, sums, sizeof(sums));
      continue;
    }
    SumsResult pixel = *row.result;
    pixel.rows = 1;
    pixel.bytes += p * pixel.stride * int64_t(pixel.floats ? sizeof(float) : 1);
    pixel.floats = pixel.floats ? pixel.floats + p * pixel.stride : nullptr;
    pixel.residual = pixel.residual ? pixel.residual + p * pixel.stride : nullptr;
    finishSums(sums, pixel);
  }
}

void depthwiseRow8(const QDepthwiseRow &row) {
#if defined(__AVX2__)
  if (row.channels == kDepthwiseChannels)
    return row.isSigned ? fullRow<true>(row) : fullRow<false>(row);
#endif
  if (row.isSigned)
    anyRow<int8_t>(row);
  else
    anyRow<uint8_t>(row);
}

void widenWeights(const int8_t *w, int64_t taps, int64_t step, int64_t channels, const int16_t *zero,
                  int16_t *out) {
  for (int64_t tap = 0; tap < taps; tap += 2, out += 2 * kDepthwiseChannels) {
    bool isPair = tap + 1 < taps;
    const int8_t *first = w + tap * step, *second = isPair ? first + step : first;
#if defined(__AVX2__)
    if (channels == kDepthwiseChannels) {
      __m256i zeros = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(zero));
      __m256i a = _mm256_sub_epi16(widen<true>(reinterpret_cast<const std::byte *>(first)), zeros);
      __m256i b = isPair ? _mm256_sub_epi16(widen<true>(reinterpret_cast<const std::byte *>(second)), zeros)
                         : _mm256_setzero_si256();
      _mm256_storeu_si256(reinterpret_cast<__m256i *>(out), _mm256_unpacklo_epi16(a, b));
      _mm256_storeu_si256(reinterpret_cast<__m256i *>(out + 16), _mm256_unpackhi_epi16(a, b));
      continue;
    }
#endif
    __builtin_memset(out, 0, 2 * kDepthwiseChannels * sizeof(int16_t));
    for (int64_t j = 0; j < channels; ++j) {
      out[place(int(j)) * 2] = int16_t(first[j] - zero[j]);
      out[place(int(j)) * 2 + 1] = isPair ? int16_t(second[j] - zero[j]) : int16_t(0);
    }
  }
}

} // namespace
} // namespace dspark
