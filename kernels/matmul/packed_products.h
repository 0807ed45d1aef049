// Products of packed codes with rows of 8 bits. Included once per ISA level.
//
// AVX2 multiplies unsigned by signed bytes into pairs of 16 bits (vpmaddubsw). As long as the codes are small
// enough those pairs are added up in 16 bits over `kSafe` quads before they are widened: 2 * 15 * 127 * 8
// fits for codes up to 15, 4 quads for codes up to 31, 2 for codes up to 63. Sums of codes up to 31 that
// start at -16 times the row's terms, which its record holds, are those of codes from -16 to 15: 8 quads fit,
// as 16 bits hold the result whatever overflowed on the way to it. For codes of 8 bits both sides are 16-bit
// words, multiplied in pairs into 32 bits (vpmaddwd), the terms of a quad as 0 with 2 and 1 with 3, which is
// how one `and` and one shift make them of bytes: 4 instructions for 32 products. (So do rows split into 16
// h + l, whose sums fit 16 bits again, but take more to finish a step, and 16 registers hold two of them
// where they hold four of these: 8 rows take 1.1 times as long.) AVX-512 has vpdpbusd, which adds in 32 bits.
// The baseline widens both sides to 16 bits.
#pragma once
#include "kernels/matmul/packed_codes.h"

namespace dspark {
namespace {

// Bytes of a row's codes per step: AVX2 has words for codes of 8 bits, (0, 2, 1, 3) of every quad.
#if defined(__AVX2__) && !defined(__AVX512F__)
constexpr int64_t kWideCodeBytes = 2 * kStepTerms;
#else
constexpr int64_t kWideCodeBytes = kStepTerms;
#endif
constexpr int64_t rowCodeBytes(int max) { return max > 63 ? kWideCodeBytes : kStepTerms; }

// Whether AVX2 sums codes less 16; the bytes after a step's codes at which the rows' records have what such
// sums start at, two numbers of 16 bits for the two pairs of a quad.
constexpr int kCentre = 16, kStartAt = 12;
constexpr bool isCentred(int max, int quads) { return max > 15 && max <= 31 && quads == kQuads; }

#if defined(__AVX2__) && !defined(__AVX512F__)
// Of every quad of codes two as words: terms 0 and 2, or 1 and 3.
template <int Odd> DSPARK_SIMD __m256i codeWords(__m256i codes) {
  return Odd ? _mm256_srli_epi16(codes, 8) : _mm256_and_si256(codes, _mm256_set1_epi16(255));
}
#endif

// Four bytes of a row's codes.
DSPARK_SIMD int32_t fourTerms(const int8_t *x) {
  int32_t four;
  __builtin_memcpy(&four, x, sizeof(four));
  return four;
}

// Whether sums start at what a constant zero point takes off them, which rows' records then hold: AVX-512 has
// to start them at something.
#if defined(__AVX512F__)
constexpr bool kHasStarts = true;
#else
constexpr bool kHasStarts = false;
#endif
constexpr bool isStarted(ZeroKind zero) { return kHasStarts && zero == ZeroKind::Constant; }

/// out[r] = sum over quads [First, First + Count) of codes times row r's terms, in the lanes of the columns;
/// start(r) more of it on levels that kHasStarts. Codes are stored as K and are at most Max.
template <CodeKind K, int Max, int First, int Count, int R, typename Start>
DSPARK_SIMD void products(const uint8_t *lines, const int8_t *const (&x)[R], Start start,
                          vi (&out)[R][kVectors]) {
#if defined(__AVX512F__)
  // A second chain where one row alone would wait for its own sums, of the codes that are moved up if there
  // are any.
  constexpr int kChains = R <= 2 ? 2 : 1, kUp = kChains == 2 ? bitsUp(K) : 0;
  __m512i sum[R][kChains];
  unroll<R * kChains>(DSPARK_LAMBDA {
    sum[i / kChains][i % kChains] = _mm512_set1_epi32(i % kChains == 0 ? start(i / kChains) : 0);
  });
  unroll<Count>([&](auto q) __attribute__((always_inline)) {
    constexpr int kChain = kUp ? isUp(K, First + q) : q % kChains;
    Codes w = quad<K, First + q, kChain * kUp>(lines);
    unroll<R>(DSPARK_LAMBDA {
      __m512i four = _mm512_set1_epi32(fourTerms(x[i] + 4 * (First + q)));
      sum[i][kChain] = _mm512_dpbusd_epi32(sum[i][kChain], w, four);
    });
  });
  unroll<R>(DSPARK_LAMBDA {
    out[i][0] = vi(sum[i][0]);
    if constexpr (kChains == 2)
      out[i][0] += vi(sum[i][kChains - 1]) >> kUp;
  });
#elif defined(__AVX2__)
  const __m256i one = _mm256_set1_epi16(1);
  if constexpr (Max > 63) {
    __m256i sum[R][2];
    unroll<Count>([&](auto q) __attribute__((always_inline)) {
      __m256i w[2] = {quad<K, First + q>(lines), quad<K, First + q>(lines + 32)};
      unroll<2>([&](auto odd) __attribute__((always_inline)) {
        __m256i words[2];
        unroll<2>(DSPARK_LAMBDA { words[i] = codeWords<odd>(w[i]); });
        unroll<R>([&](auto r) __attribute__((always_inline)) {
          __m256i two = _mm256_set1_epi32(fourTerms(x[r] + 8 * (First + q) + 4 * odd));
          unroll<2>(DSPARK_LAMBDA {
            __m256i product = _mm256_madd_epi16(words[i], two);
            sum[r][i] = q == 0 && odd == 0 ? product : _mm256_add_epi32(sum[r][i], product);
            asm volatile("" : "+x"(sum[r][i])); // in order, see below
          });
        });
      });
    });
    unroll<R * 2>(DSPARK_LAMBDA { out[i / 2][i % 2] = vi(sum[i / 2][i % 2]); });
  } else if constexpr (isCentred(Max, Count)) {
    __m256i pairs[R][2], start[R];
    unroll<R>(DSPARK_LAMBDA { start[i] = _mm256_set1_epi32(fourTerms(x[i] + kStepTerms + kStartAt)); });
    unroll<Count>([&](auto q) __attribute__((always_inline)) {
      __m256i w[2] = {quad<K, First + q>(lines), quad<K, First + q>(lines + 32)};
      unroll<R>([&](auto r) __attribute__((always_inline)) {
        __m256i four = _mm256_set1_epi32(fourTerms(x[r] + 4 * (First + q)));
        unroll<2>(DSPARK_LAMBDA {
          __m256i product = _mm256_maddubs_epi16(w[i], four);
          pairs[r][i] = _mm256_add_epi16(q == 0 ? start[r] : pairs[r][i], product);
          asm volatile("" : "+x"(pairs[r][i])); // in order, see below
        });
      });
    });
    unroll<R>([&](auto r) __attribute__((always_inline)) {
      __m256i centred = _mm256_madd_epi16(_mm256_set1_epi32(fourTerms(x[r] + kStepTerms + kStartAt)), one);
      unroll<2>(
          DSPARK_LAMBDA { out[r][i] = vi(_mm256_sub_epi32(_mm256_madd_epi16(pairs[r][i], one), centred)); });
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

/// The records of R rows of A, for weights up to Max.
template <int Max, int R> struct RowCursors {
  static constexpr int64_t kCodeBytes = rowCodeBytes(Max);
  const int8_t *x[R];

  RowCursors(const QuantizedRows &rows, int64_t first) {
    for (int r = 0; r < R; ++r)
      x[r] = reinterpret_cast<const int8_t *>(rows.records + (first + r) * rows.rowBytes());
  }
  DSPARK_SIMD void next() {
    unroll<R>(DSPARK_LAMBDA { x[i] += kCodeBytes + kRowNumberBytes; });
  }
  DSPARK_SIMD vf scale(int r) const { return number(r, 0); }
  DSPARK_SIMD vf sum(int r, int half) const { return number(r, 1 + half); }
  DSPARK_SIMD int32_t start(int r, int half) const { return fourTerms(x[r] + kCodeBytes + 4 * (1 + half)); }

private:
  DSPARK_SIMD vf number(int r, int i) const {
    return splat(reinterpret_cast<const float *>(x[r] + kCodeBytes)[i]);
  }
};

// Whether a step's two groups are added up before the rows' scales come in: AVX-512, whose pipes for products
// are what bounds many rows, then has 3 multiplications for 8 products instead of 4, which pays for
// registers.
constexpr bool isJoined(int groups) { return kHasStarts && groups == 2; }

/// Adds one group of a step, quads [First, First + Count), to the sums of R rows: `zero` holds zero points or
/// offsets, as Z says. With two groups that are joined `joined` is what the first one hands to the second.
template <CodeKind K, int Max, ZeroKind Z, int First, int Count, int R>
DSPARK_SIMD void addGroup(const uint8_t *lines, const RowCursors<Max, R> &rows, const vf (&scale)[kVectors],
                          const vf (&zero)[kVectors], vf (&joined)[R][kVectors], vf (&sum)[R][kVectors]) {
  constexpr bool kIsOffset = Z == ZeroKind::Offset;
  constexpr bool kIsJoined = isJoined(int(kQuads) / Count);
  vi integer[R][kVectors];
  auto start = [&](int r)
                   __attribute__((always_inline)) { return isStarted(Z) ? rows.start(r, First > 0) : 0; };
  products<K, Max, First, Count>(lines, rows.x, start, integer);
  unroll<R>([&](auto r) __attribute__((always_inline)) {
    vf by = rows.scale(r), codes = rows.sum(r, First > 0);
    unroll<kVectors>(DSPARK_LAMBDA {
      vf exact = floats(integer[r][i]);
      if constexpr (!kIsOffset && !isStarted(Z))
        exact = fma(zero[i], codes, exact); // whole numbers below 2^24
      if constexpr (kIsJoined)
        joined[r][i] = First > 0 ? fma(exact, scale[i], joined[r][i]) : exact * scale[i];
      if constexpr (!kIsJoined)
        sum[r][i] = fma(exact, scale[i] * by, sum[r][i]);
      else if constexpr (First > 0)
        sum[r][i] = fma(joined[r][i], by, sum[r][i]);
      if constexpr (kIsOffset)
        sum[r][i] = fma(zero[i], codes, sum[r][i]);
    });
  });
}

// As many rows as the registers hold: AVX2 needs 2 vectors a row, twice where 16-bit sums are widened midway.
#if defined(__AVX512F__)
constexpr int rowsAtOnce(CodeKind, int, int) { return 8; }
#elif defined(__AVX2__)
constexpr int rowsAtOnce(CodeKind, int max, int groups) {
  if (max <= 15)
    return 6;
  return max <= 63 && groups * max <= 48 && !isCentred(max, int(kQuads) / groups) ? 3 : 4;
}
#else
constexpr int rowsAtOnce(CodeKind, int, int) { return 2; }
#endif

} // namespace
} // namespace dspark
