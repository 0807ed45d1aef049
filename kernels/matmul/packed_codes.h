// Codes of packed weights in registers: quads out of bit planes, and their products with 8-bit rows. Included
// once per ISA level.
//
// AVX2 multiplies unsigned by signed bytes into pairs of 16 bits (vpmaddubsw). As long as the codes are small
// enough those pairs are added up in 16 bits over `kSafeQuads` quads before they are widened: 2 * 15 * 127 *
// 8 fits for codes up to 15, 4 quads for codes up to 31, 2 for codes up to 63. Codes of 8 bits become signed:
// |w| * (x with w's sign), two products of 128 * 127 fit. AVX-512 has vpdpbusd, which adds in 32 bits. The
// baseline widens both sides to 16 bits.
#pragma once
#include "kernels/matmul/packed_scales.h"
#include <emmintrin.h>

namespace dspark {
namespace {

constexpr int maxCode(CodeKind kind) {
  switch (kind) {
  case CodeKind::U2:
    return 3;
  case CodeKind::U3:
    return 7;
  case CodeKind::U4:
    return 15;
  case CodeKind::Fp4:
    return 2 * kFp4Zero;
  case CodeKind::U5:
    return 31;
  case CodeKind::U6:
    return 63;
  default:
    return 255;
  }
}

// Bits of quad q in a plane with `bits` a code, one code a byte; `lines` is the plane plus 4 * column.
DSPARK_SIMD uint32_t fourBits(const uint8_t *lines, int bits, int q) {
  int perLine = 8 / bits;
  uint32_t four;
  __builtin_memcpy(&four, lines + q / perLine * 64, sizeof(four));
  return four >> q % perLine * bits & ((1u << bits) - 1) * 0x01010101u;
}
DSPARK_SIMD uint32_t fourLevels(const int8_t (&levels)[16], int zero, uint32_t four) {
  uint32_t codes = 0;
  for (int i = 0; i < 32; i += 8)
    codes |= uint32_t(levels[four >> i & 15] + zero) << i;
  return codes;
}
/// The four codes of one column in quad q of a step, one a byte; `lines` is the step's plus 4 * column.
DSPARK_SIMD uint32_t fourCodes(CodeKind kind, const uint8_t *lines, int q) {
  switch (kind) {
  case CodeKind::U2:
    return fourBits(lines, 2, q);
  case CodeKind::U3:
    return fourBits(lines, 2, q) | fourBits(lines + 128, 1, q) << 2;
  case CodeKind::U4:
    return fourBits(lines, 4, q);
  case CodeKind::U5:
    return fourBits(lines, 4, q) | fourBits(lines + 256, 1, q) << 4;
  case CodeKind::U6:
    return fourBits(lines, 4, q) | fourBits(lines + 256, 2, q) << 4;
  case CodeKind::Nl4:
    return fourLevels(kNl4Levels, kNl4Zero, fourBits(lines, 4, q));
  case CodeKind::Fp4:
    return fourLevels(kFp4Levels, kFp4Zero, fourBits(lines, 4, q));
  default:
    return fourBits(lines, 8, q);
  }
}

#if defined(__AVX2__)

#if defined(__AVX512F__)
using Codes = __m512i;
DSPARK_SIMD Codes codesAt(const void *p) { return _mm512_loadu_si512(p); }
DSPARK_SIMD void putCodes(void *p, Codes v) { _mm512_storeu_si512(p, v); }
DSPARK_SIMD Codes splatBytes(int v) { return _mm512_set1_epi8(char(v)); }
template <int N> DSPARK_SIMD Codes shifted(Codes v) { // right by N, left by -N, within 16 bits
  return N >= 0 ? _mm512_srli_epi16(v, N > 0 ? N : 0) : _mm512_slli_epi16(v, N < 0 ? -N : 0);
}
DSPARK_SIMD Codes lookUp(const int8_t *levels, int zero, Codes index) {
  __m128i table =
      _mm_add_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i *>(levels)), _mm_set1_epi8(char(zero)));
  return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(table), index);
}
#else
using Codes = __m256i;
DSPARK_SIMD Codes codesAt(const void *p) { return _mm256_loadu_si256(static_cast<const __m256i *>(p)); }
DSPARK_SIMD void putCodes(void *p, Codes v) { _mm256_storeu_si256(static_cast<__m256i *>(p), v); }
DSPARK_SIMD Codes splatBytes(int v) { return _mm256_set1_epi8(char(v)); }
template <int N> DSPARK_SIMD Codes shifted(Codes v) {
  return N >= 0 ? _mm256_srli_epi16(v, N > 0 ? N : 0) : _mm256_slli_epi16(v, N < 0 ? -N : 0);
}
DSPARK_SIMD Codes lookUp(const int8_t *levels, int zero, Codes index) {
  __m128i table =
      _mm_add_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i *>(levels)), _mm_set1_epi8(char(zero)));
  return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), index);
}
#endif

constexpr int kCodeBytes = sizeof(Codes); // one vector holds all 16 columns of a quad, or half of them

// Quad Q's bits of a plane with `Bits` bits a code, moved up by `To`.
template <int Bits, int To, int Q> DSPARK_SIMD Codes plane(const uint8_t *lines) {
  constexpr int kPerLine = 8 / Bits;
  Codes line = codesAt(lines + Q / kPerLine * 64);
  return shifted<Q % kPerLine * Bits - To>(line) & splatBytes(((1 << Bits) - 1) << To);
}

/// Quad Q as unsigned codes; `lines` is the step's, plus the byte offset of this vector in a line.
template <CodeKind K, int Q> DSPARK_SIMD Codes quad(const uint8_t *lines) {
  if constexpr (K == CodeKind::U2)
    return plane<2, 0, Q>(lines);
  else if constexpr (K == CodeKind::U3)
    return plane<2, 0, Q>(lines) | plane<1, 2, Q>(lines + 128);
  else if constexpr (K == CodeKind::U4)
    return plane<4, 0, Q>(lines);
  else if constexpr (K == CodeKind::U5)
    return plane<4, 0, Q>(lines) | plane<1, 4, Q>(lines + 256);
  else if constexpr (K == CodeKind::U6)
    return plane<4, 0, Q>(lines) | plane<2, 4, Q>(lines + 256);
  else if constexpr (K == CodeKind::Nl4)
    return lookUp(kNl4Levels, kNl4Zero, plane<4, 0, Q>(lines));
  else if constexpr (K == CodeKind::Fp4)
    return lookUp(kFp4Levels, kFp4Zero, plane<4, 0, Q>(lines));
  else
    return codesAt(lines + Q * 64);
}

/// All codes of a step, one byte each, in the layout of U8.
template <CodeKind K> void unpackStep(const uint8_t *lines, uint8_t *bytes) {
  unroll<kQuads>(DSPARK_LAMBDA {
    for (int at = 0; at < 64; at += kCodeBytes)
      putCodes(bytes + i * 64 + at, quad<K, int(i)>(lines + at));
  });
}

#else // SSE2: codes are always unpacked first

template <CodeKind K> void unpackStep(const uint8_t *lines, uint8_t *bytes) {
  for (int q = 0; q < kQuads; ++q)
    for (int at = 0; at < 64; at += 4) {
      uint32_t codes = fourCodes(K, lines + at, q);
      __builtin_memcpy(bytes + q * 64 + at, &codes, sizeof(codes));
    }
}

#endif

// Four 8-bit terms of a row.
DSPARK_SIMD int32_t fourTerms(const int8_t *x) {
  int32_t four;
  __builtin_memcpy(&four, x, sizeof(four));
  return four;
}

/// out[r] = sum over quads [First, First + Count) of codes times row r's terms, in the lanes of the columns.
/// Codes are stored as K and are at most Max.
template <CodeKind K, int Max, int First, int Count, int R>
DSPARK_SIMD void products(const uint8_t *lines, const int8_t *const (&x)[R], vi (&out)[R][kVectors]) {
#if defined(__AVX512F__)
  // A second chain where one row alone would wait for its own sums.
  constexpr int kChains = R <= 2 ? 2 : 1;
  __m512i sum[R][kChains];
  unroll<R * kChains>(DSPARK_LAMBDA { sum[i / kChains][i % kChains] = _mm512_setzero_si512(); });
  unroll<Count>([&](auto q) __attribute__((always_inline)) {
    Codes w = quad<K, First + q>(lines);
    unroll<R>(DSPARK_LAMBDA {
      __m512i four = _mm512_set1_epi32(fourTerms(x[i] + 4 * (First + q)));
      sum[i][q % kChains] = _mm512_dpbusd_epi32(sum[i][q % kChains], w, four);
    });
  });
  unroll<R>(DSPARK_LAMBDA {
    out[i][0] = vi(kChains == 2 ? _mm512_add_epi32(sum[i][0], sum[i][kChains - 1]) : sum[i][0]);
  });
#elif defined(__AVX2__)
  const __m256i one = _mm256_set1_epi16(1);
  if constexpr (Max > 63) {
    unroll<Count>([&](auto q) __attribute__((always_inline)) {
      __m256i w[2], magnitude[2];
      unroll<2>(DSPARK_LAMBDA {
        w[i] = quad<K, First + q>(lines + 32 * i) ^ splatBytes(128);
        magnitude[i] = _mm256_abs_epi8(w[i]);
      });
      unroll<R>([&](auto r) __attribute__((always_inline)) {
        __m256i four = _mm256_set1_epi32(fourTerms(x[r] + 4 * (First + q)));
        unroll<2>(DSPARK_LAMBDA {
          __m256i pairs = _mm256_maddubs_epi16(magnitude[i], _mm256_sign_epi8(four, w[i]));
          vi sums = vi(_mm256_madd_epi16(pairs, one));
          out[r][i] = q == 0 ? sums : out[r][i] + sums;
        });
      });
    });
  } else {
    constexpr int kSafe = Max <= 15 ? 8 : Max <= 31 ? 4 : 2;
    constexpr int kRun = kSafe < Count ? kSafe : Count;
    unroll<Count / kRun>([&](auto run) __attribute__((always_inline)) {
      __m256i pairs[R][2];
      unroll<kRun>([&](auto in) __attribute__((always_inline)) {
        constexpr int q = First + run * kRun + in;
        __m256i w[2] = {quad<K, q>(lines), quad<K, q>(lines + 32)};
        unroll<R>([&](auto r) __attribute__((always_inline)) {
          __m256i four = _mm256_set1_epi32(fourTerms(x[r] + 4 * q));
          unroll<2>(DSPARK_LAMBDA {
            __m256i product = _mm256_maddubs_epi16(w[i], four);
            pairs[r][i] = in == 0 ? product : _mm256_add_epi16(pairs[r][i], product);
            // Keeps the quads in order: the compiler would finish one row after the other and spill the
            // codes.
            asm volatile("" : "+x"(pairs[r][i]));
          });
        });
      });
      unroll<R * 2>(DSPARK_LAMBDA {
        vi sums = vi(_mm256_madd_epi16(pairs[i / 2][i % 2], one));
        out[i / 2][i % 2] = run == 0 ? sums : out[i / 2][i % 2] + sums;
      });
    });
  }
#else
  for (int r = 0; r < R; ++r) {
    __m128i sums[2 * kVectors] = {}, zero = _mm_setzero_si128(); // two columns each, two sums a column
    for (int q = First; q < First + Count; ++q) {
      __m128i four = _mm_set1_epi32(fourTerms(x[r] + 4 * q));
      four = _mm_unpacklo_epi8(four, _mm_cmpgt_epi8(zero, four));
      for (int v = 0; v < kVectors; ++v) {
        __m128i w = _mm_loadu_si128(reinterpret_cast<const __m128i *>(lines + q * 64 + v * 16));
        sums[2 * v] = _mm_add_epi32(sums[2 * v], _mm_madd_epi16(_mm_unpacklo_epi8(w, zero), four));
        sums[2 * v + 1] = _mm_add_epi32(sums[2 * v + 1], _mm_madd_epi16(_mm_unpackhi_epi8(w, zero), four));
      }
    }
    for (int v = 0; v < kVectors; ++v) {
      vi low = vi(sums[2 * v]), high = vi(sums[2 * v + 1]);
      out[r][v] =
          __builtin_shufflevector(low, high, 0, 2, 4, 6) + __builtin_shufflevector(low, high, 1, 3, 5, 7);
    }
  }
#endif
}

} // namespace
} // namespace dspark
