// What igemm_quads.h asks for, by AVX-512's instructions.
#pragma once
#include "kernels/matmul/igemm.h"
#include <immintrin.h>

namespace dspark {
namespace {
using QuadSums = __m512i;
inline QuadSums loadQuads(const void *p) { return _mm512_loadu_si512(p); }
inline void storeQuads(void *p, QuadSums v) { _mm512_storeu_si512(p, v); }
inline QuadSums splatQuad(int32_t terms) { return _mm512_set1_epi32(terms); }
inline QuadSums dotQuads(QuadSums sum, QuadSums a, QuadSums b) { return _mm512_dpbusd_epi32(sum, a, b); }
inline QuadSums takeOff(QuadSums sum, QuadSums columns, int32_t zero) {
  return _mm512_sub_epi32(sum, _mm512_mullo_epi32(columns, _mm512_set1_epi32(zero)));
}
} // namespace
} // namespace dspark
