// Pairs of bf16 as terms for gemm_loops.h: the even one in the lower half. Products are exact; of a pair that
// of the odd ones is added first, in f32, as vdpbf16ps does, which takes numbers below 2^-126 for zero and is
// used where the including file is compiled for it.
#pragma once
#include "kernels/common/contract.h"
#include "kernels/matmul/bf16_parts.h"
#include "kernels/matmul/half_vectors.h"

namespace dspark {
namespace {

#if defined(__AVX512BF16__)
DSPARK_SIMD vf multiplyAdd(vf x, vf y, vf sum) {
  return vf(_mm512_dpbf16_ps(__m512(sum), __m512bh(x), __m512bh(y)));
}
DSPARK_SIMD void addHalf(vh &sum, const float *x, vh row) { // as that of terms_f32.h
  asm("vdpbf16ps %2%{1to8%}, %1, %0" : "+v"(sum) : "v"(row), "m"(*x));
}

DSPARK_SIMD void roundVectors(vf low, vf high, uint16_t *out) {
  _mm512_storeu_si512(out, (__m512i)_mm512_cvtne2ps_pbh(__m512(high), __m512(low)));
}
#else
DSPARK_SIMD vf evenOf(vf pairs) { return fromBits(bits(pairs) << 16); }
DSPARK_SIMD vf oddOf(vf pairs) { return fromBits(bits(pairs) & kUpperHalf); }
DSPARK_SIMD vf multiplyAdd(vf x, vf y, vf sum) {
  return fma(evenOf(x), evenOf(y), fma(oddOf(x), oddOf(y), sum));
}
DSPARK_SIMD void addHalf(vh &sum, const float *x, vh row) {
  typedef int32_t halfInts __attribute__((ext_vector_type(kLanes / 2)));
  vf pair = splat(*x);
  halfInts pairs = __builtin_bit_cast(halfInts, row);
  sum = __builtin_elementwise_fma(vh(oddOf(pair)[0]), __builtin_bit_cast(vh, pairs & kUpperHalf), sum);
  sum = __builtin_elementwise_fma(vh(evenOf(pair)[0]), __builtin_bit_cast(vh, pairs << 16), sum);
}

typedef uint16_t vrounded __attribute__((ext_vector_type(kLanes), aligned(2)));

DSPARK_SIMD void roundVectors(vf low, vf high, uint16_t *out) {
  auto round = [](vf x) __attribute__((always_inline)) {
    vi own = bits(x);
    vi isNan = (own & 0x7fffffff) > kInfinityBits;
    return __builtin_convertvector((isNan ? own | kQuietBit : nearestBf16(own)) >> 16, vrounded);
  };
  *reinterpret_cast<vrounded *>(out) = round(low);
  *reinterpret_cast<vrounded *>(out + kLanes) = round(high);
}
#endif

// `count` floats to the nearest bf16, ties to even, and one zero more where that makes them whole pairs.
DSPARK_SIMD void roundRun(const float *x, int64_t count, uint16_t *out) {
  int64_t at = 0;
  for (; at + 2 * kLanes <= count; at += 2 * kLanes)
    roundVectors(load(x + at), load(x + at + kLanes), out + at);
  if (at == count)
    return;
  float last[2 * kLanes] = {};
  uint16_t rest[2 * kLanes];
  __builtin_memcpy(last, x + at, size_t(count - at) * sizeof(float));
  roundVectors(load(last), load(last + kLanes), rest);
  __builtin_memcpy(out + at, rest, size_t(count - at + 1) / 2 * 2 * sizeof(uint16_t));
}

// Rows of `width` floats that follow each other, each to whole pairs (Bf16GemmOps::round).
void roundRows(const float *x, int64_t rows, int64_t width, uint16_t *out) {
  DSPARK_EXPECTS(rows >= 0 && width >= 0);
  if (width % 2 == 0)
    return roundRun(x, rows * width, out);
  for (int64_t row = 0; row < rows; ++row)
    roundRun(x + row * width, width, out + row * (width + 1));
}

} // namespace
} // namespace dspark
