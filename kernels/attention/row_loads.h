// Included by attention_core_impl.h: rows of f32, f16 or bf16 as vectors of f32.
#pragma once
#include "kernels/common/vector_math.h"

namespace dspark {
namespace {

using namespace simd;

typedef float v4 __attribute__((ext_vector_type(4)));
typedef float v8 __attribute__((ext_vector_type(8)));
typedef float v4Unaligned __attribute__((ext_vector_type(4), aligned(4)));
typedef float v8Unaligned __attribute__((ext_vector_type(8), aligned(4)));

DSPARK_SIMD v8 twoQuarters(const float *low, const float *high) {
  return __builtin_shufflevector(v4(*reinterpret_cast<const v4Unaligned *>(low)),
                                 v4(*reinterpret_cast<const v4Unaligned *>(high)), 0, 1, 2, 3, 4, 5, 6, 7);
}
DSPARK_SIMD vf loadRow(const float *p) { return load(p); }

/// Brings the line of a row that holds element d to L2: L1 has too few misses in flight for DRAM's latency
/// (one row over 32768 keys takes 1.5 times as long with rows asked for there).
template <typename T> DSPARK_SIMD void ask(const void *row, int64_t d) {
  __builtin_prefetch(static_cast<const T *>(row) + d, 0, 2);
}
/// Elements of a cache line.
template <typename T> constexpr int64_t kLineElements = 64 / int64_t(sizeof(T));

#ifdef __F16C__
// Halves become f32 in registers: the same values as widened rows, for a quarter of the memory traffic.
#define DSPARK_HALF_ROWS 1
struct F16 {
  _Float16 bits;
  operator float() const { return float(bits); }
};
struct BF16 {
  uint16_t bits;
  operator float() const { return __builtin_bit_cast(float, uint32_t(bits) << 16); }
};
typedef uint16_t h8 __attribute__((ext_vector_type(8)));
typedef uint16_t h8Unaligned __attribute__((ext_vector_type(8), aligned(2)));
typedef uint16_t hf __attribute__((ext_vector_type(kLanes)));
typedef uint16_t hfUnaligned __attribute__((ext_vector_type(kLanes), aligned(2)));
typedef uint64_t q2 __attribute__((ext_vector_type(2)));

DSPARK_SIMD h8 twoQuarterHalves(const void *low, const void *high) {
  q2 both;
  __builtin_memcpy(&both, low, 8);
  __builtin_memcpy(reinterpret_cast<char *>(&both) + 8, high, 8);
  return __builtin_bit_cast(h8, both);
}
DSPARK_SIMD v8 twoQuarters(const F16 *low, const F16 *high) {
  typedef _Float16 f16x8 __attribute__((ext_vector_type(8)));
  return __builtin_convertvector(__builtin_bit_cast(f16x8, twoQuarterHalves(low, high)), v8);
}
DSPARK_SIMD v8 twoQuarters(const BF16 *low, const BF16 *high) {
  typedef uint32_t u8v __attribute__((ext_vector_type(8)));
  return __builtin_bit_cast(v8, __builtin_convertvector(twoQuarterHalves(low, high), u8v) << 16);
}
DSPARK_SIMD vf widen(F16, hf bits) {
  typedef _Float16 f16v __attribute__((ext_vector_type(kLanes)));
  return __builtin_convertvector(__builtin_bit_cast(f16v, bits), vf);
}
DSPARK_SIMD vf widen(BF16, hf bits) {
  typedef uint32_t uv __attribute__((ext_vector_type(kLanes)));
  return __builtin_bit_cast(vf, __builtin_convertvector(bits, uv) << 16);
}
DSPARK_SIMD vf loadRow(const F16 *p) { return widen(F16(), *reinterpret_cast<const hfUnaligned *>(p)); }
DSPARK_SIMD vf loadRow(const BF16 *p) { return widen(BF16(), *reinterpret_cast<const hfUnaligned *>(p)); }
#endif

#if defined(__AVX512F__)
DSPARK_SIMD vf widen(float, v8 low, v8 high) {
  return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}
template <typename T> DSPARK_SIMD vf widen(T type, h8 low, h8 high) {
  return widen(type,
               __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
}
DSPARK_SIMD v8 loadEight(const float *p) { return *reinterpret_cast<const v8Unaligned *>(p); }
template <typename T> DSPARK_SIMD h8 loadEight(const T *p) {
  return *reinterpret_cast<const h8Unaligned *>(p);
}
DSPARK_SIMD v8 loadPartOfEight(const float *p, int64_t count) {
  return __builtin_bit_cast(v8, _mm256_maskz_loadu_ps(__mmask8((1 << count) - 1), p));
}
template <typename T> DSPARK_SIMD h8 loadPartOfEight(const T *p, int64_t count) {
  return __builtin_bit_cast(h8, _mm_maskz_loadu_epi16(__mmask8((1 << count) - 1), p));
}

/// Eight elements of each of two rows.
template <typename T> DSPARK_SIMD vf loadTwo(const T *low, const T *high) {
  return widen(T(), loadEight(low), loadEight(high));
}
/// The first `count` of eight; the others are 0.
template <typename T> DSPARK_SIMD vf loadPartOfTwo(const T *low, const T *high, int64_t count) {
  return widen(T(), loadPartOfEight(low, count), loadPartOfEight(high, count));
}
#endif
} // namespace
} // namespace dspark
