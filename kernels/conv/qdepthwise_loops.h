// The loops of qdepthwise.h, included once per ISA level; AVX-512 has the multiply-add of pairs that adds
// too.
#pragma once
#include "kernels/conv/qdepthwise.h"
#include <immintrin.h>

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

template <bool isSigned> void fullRow(const QDepthwiseRow &row) {
  const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(row.start)),
                high = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(row.start + 8));
  const __m256i first = _mm256_permute2x128_si256(low, high, 0x20),
                second = _mm256_permute2x128_si256(low, high, 0x31);
  for (int64_t p = 0; p < row.pixels; ++p) {
    const std::byte *const *taps = row.taps + p * row.tapStep;
    int64_t at = row.channel + p * row.byteStep;
    __m256i sums[2] = {first, second};
    for (int64_t pair = 0; pair < row.pairs; ++pair) {
      __m256i a = widen<isSigned>(taps[2 * pair] + at), b = widen<isSigned>(taps[2 * pair + 1] + at);
      sums[0] = addPair(sums[0], _mm256_unpacklo_epi16(a, b), row.w + pair * 32);
      sums[1] = addPair(sums[1], _mm256_unpackhi_epi16(a, b), row.w + pair * 32 + 16);
    }
    auto *to = reinterpret_cast<__m256i *>(row.sums + p * kDepthwiseChannels);
    _mm256_storeu_si256(to, _mm256_permute2x128_si256(sums[0], sums[1], 0x20));
    _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(sums[0], sums[1], 0x31));
  }
}
#else
int place(int j) { return j; }
#endif

template <typename T> void anyRow(const QDepthwiseRow &row) {
  for (int64_t p = 0; p < row.pixels; ++p) {
    const std::byte *const *taps = row.taps + p * row.tapStep;
    int64_t at = row.channel + p * row.byteStep;
    int32_t *sums = row.sums + p * kDepthwiseChannels;
    __builtin_memcpy(sums, row.start, kDepthwiseChannels * sizeof(int32_t));
    for (int64_t pair = 0; pair < row.pairs; ++pair) {
      const T *a = reinterpret_cast<const T *>(taps[2 * pair] + at),
              *b = reinterpret_cast<const T *>(taps[2 * pair + 1] + at);
      const int16_t *w = row.w + pair * 2 * kDepthwiseChannels;
      for (int64_t j = 0; j < row.channels; ++j) {
        const int16_t *both = w + 2 * place(int(j));
        sums[j] += a[j] * both[0] + b[j] * both[1];
      }
    }
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
