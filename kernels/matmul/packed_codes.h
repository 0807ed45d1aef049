// Codes of packed weights in registers: quads out of lines. Included once per ISA level.
#pragma once
#include "kernels/matmul/packed_scales.h"
#include <emmintrin.h>

namespace dspark {
namespace {

constexpr int maxCode(CodeKind kind) {
  if (!hasLevels(kind))
    return kind < CodeKind::U8 ? (1 << kCodeLines[int(kind)]) - 1 : 255;
  const Levels &levels = levelsOf(kind);
  int most = 0;
  for (int8_t level : levels.of)
    most = level + levels.zero > most ? level + levels.zero : most;
  return most;
}

DSPARK_SIMD uint32_t fourLevels(const Levels &levels, uint32_t four) {
  uint32_t codes = 0;
  for (int i = 0; i < 32; i += 8)
    codes |= uint32_t(levels.of[four >> i & 15] + levels.zero) << i;
  return codes;
}
DSPARK_SIMD uint32_t fourStored(int bits, const uint8_t *lines, int q) {
  CodePieces pieces = codePieces(bits, q);
  uint32_t codes = 0;
  for (int i = 0; i < pieces.count; ++i) {
    const CodePiece &piece = pieces.of[i];
    uint32_t four;
    __builtin_memcpy(&four, lines + piece.line * 64, sizeof(four));
    codes = codes << piece.bits | (four >> piece.at & ((1u << piece.bits) - 1) * 0x01010101u);
  }
  return codes;
}
/// The four codes of one column in quad q of a step, one a byte; `lines` is the step's plus 4 * column.
DSPARK_SIMD uint32_t fourCodes(CodeKind kind, const uint8_t *lines, int q) {
  uint32_t stored = fourStored(int(kCodeLines[int(kind)]), lines, q);
  return hasLevels(kind) ? fourLevels(levelsOf(kind), stored) : stored;
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
DSPARK_SIMD Codes lookUp(const Levels &levels, Codes index) {
  __m128i table = _mm_add_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i *>(levels.of)),
                               _mm_set1_epi8(char(levels.zero)));
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
DSPARK_SIMD Codes lookUp(const Levels &levels, Codes index) {
  __m128i table = _mm_add_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i *>(levels.of)),
                               _mm_set1_epi8(char(levels.zero)));
  return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), index);
}
#endif

constexpr int kCodeBytes = sizeof(Codes); // one vector holds all 16 columns of a quad, or half of them

// Bits of codes below piece I.
constexpr int bitsBelow(const CodePieces &pieces, int i) {
  int below = 0;
  while (++i < pieces.count)
    below += pieces.of[i].bits;
  return below;
}

/// How far codes of a kind are moved up that are used as they lie, and which quads' are: they save a shift.
constexpr int bitsUp(CodeKind kind) {
  constexpr int kUp[] = {0, 0, 2, 3, 4, 3, 2, 0, 0};
  return hasLevels(kind) ? 0 : kUp[kCodeLines[int(kind)]];
}
constexpr bool isUp(CodeKind kind, int q) {
  CodePieces pieces = codePieces(int(kCodeLines[int(kind)]), q);
  return ((pieces.of[0].at - bitsBelow(pieces, 0)) & bitsUp(kind)) != 0;
}

// Quad Q as it is stored, moved up.
template <int Bits, int Q, int Up> DSPARK_SIMD Codes stored(const uint8_t *lines) {
  constexpr CodePieces kPieces = codePieces(Bits, Q);
  if constexpr (Bits == 8)
    return codesAt(lines + Q * 64);
  Codes codes;
  unroll<kPieces.count>([&](auto i) __attribute__((always_inline)) {
    constexpr CodePiece kPiece = kPieces.of[i];
    constexpr int kTo = bitsBelow(kPieces, i) + Up;
    Codes bits = shifted<kPiece.at - kTo>(codesAt(lines + kPiece.line * 64)) &
                 splatBytes(((1 << kPiece.bits) - 1) << kTo);
    codes = i == 0 ? bits : codes | bits;
  });
  return codes;
}

/// Quad Q as unsigned codes, moved up by Up; `lines` is the step's, plus the byte offset of this vector in a
/// line.
template <CodeKind K, int Q, int Up = 0> DSPARK_SIMD Codes quad(const uint8_t *lines) {
  Codes codes = stored<int(kCodeLines[int(K)]), Q, Up>(lines);
  if constexpr (hasLevels(K))
    return lookUp(levelsOf(K), codes);
  else
    return codes;
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

using Unpack = void (*)(const uint8_t *lines, uint8_t *bytes);
Unpack unpacker(CodeKind kind) {
  using enum CodeKind;
  constexpr Unpack kTable[] = {unpackStep<U2>,   unpackStep<U3>,   unpackStep<U4>,  unpackStep<U5>,
                               unpackStep<U6>,   unpackStep<U8>,   unpackStep<Nl4>, unpackStep<Fp4>,
                               unpackStep<Iq1s>, unpackStep<Iq1m>, unpackStep<Iq2>, unpackStep<Iq3xxs>,
                               unpackStep<Iq3s>};
  return kTable[int(kind)];
}

} // namespace
} // namespace dspark
