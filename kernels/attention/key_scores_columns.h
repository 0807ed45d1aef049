// Included by attention_core_impl.h: scores of few rows at the levels with 16 registers. A panel's keys are
// transposed in registers, so that they come in lanes.
#pragma once
#include "kernels/attention/row_loads.h"

namespace dspark {
namespace {

DSPARK_SIMD v8 fmaEight(float a, v8 b, v8 c) {
#ifdef __FMA__
  return __builtin_elementwise_fma(v8(a), b, c);
#else
  return v8(a) * b + c;
#endif
}

/// R rows by one panel's keys, transposed in registers, while later keys are asked for row by row.
template <typename T, int R>
void keyScoresOf(const float *q, int64_t size, const void *const *keys, float *scores) {
  v8 acc[R][2] = {};
  // Both halves share a broadcast of q as far as 16 registers hold their columns and sums.
  constexpr int kTogether = R <= 3 ? 2 : 1;
  int64_t d = 0, asked = 0;
  for (; d + 4 <= size; d += 4) {
    for (; asked * size < kKeyPanel * (d + 4); ++asked)
      for (int64_t c = 0; c < size; c += kLineElements<T>)
        ask<T>(keys[kRowsAhead + asked], c);
    for (int first = 0; first < 2; first += kTogether) {
      v8 columns[kTogether][4];
      for (int h = 0; h < kTogether; ++h)
        fourColumns<T>(keys + 8 * (first + h), d, columns[h]);
      for (int i = 0; i < 4; ++i)
        for (int r = 0; r < R; ++r)
          for (int h = 0; h < kTogether; ++h)
            acc[r][first + h] = fmaEight(q[r * size + d + i], columns[h][i], acc[r][first + h]);
    }
  }
  for (; d < size; ++d)
    for (int half = 0; half < 2; ++half) {
      v8 column;
      for (int j = 0; j < 8; ++j)
        column[j] = static_cast<const T *>(keys[8 * half + j])[d];
      for (int r = 0; r < R; ++r)
        acc[r][half] = fmaEight(q[r * size + d], column, acc[r][half]);
    }
  for (int r = 0; r < R; ++r)
    for (int half = 0; half < 2; ++half)
      *reinterpret_cast<v8Unaligned *>(scores + r * kKeyBlock + 8 * half) = acc[r][half];
}

template <typename T> struct KeyPanel {
  static constexpr int kMostRows = 4;

  /// R rows by one panel.
  template <int R> static void run(const float *q, int64_t size, const void *const *keys, float *scores) {
    keyScoresOf<T, R>(q, size, keys, scores);
  }
};

} // namespace
} // namespace dspark
