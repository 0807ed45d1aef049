// Included by attention_core_impl.h: scores of few rows with 16 lanes and 32 registers.
//
// A vector holds eight elements of two keys, so nothing is transposed before the multiply-adds: a lane is one
// of a score's chains, and the chains of 16 keys are transposed and added once at the end. Four pairs of keys
// are read side by side: their addresses fit the integer registers.
#pragma once
#include "kernels/attention/row_loads.h"

namespace dspark {
namespace {

static_assert(kScoreChains == 8 && kKeyPanel == 16 && kLanes == 16);

/// Within quarters of vectors: a transposed 4x4, whose rows are added.
DSPARK_SIMD vf sumOfQuarters(const vf (&a)[4]) {
  auto low = [](vf x, vf y) {
    return __builtin_shufflevector(x, y, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
  };
  auto high = [](vf x, vf y) {
    return __builtin_shufflevector(x, y, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
  };
  auto lowPairs = [](vf x, vf y) {
    return __builtin_shufflevector(x, y, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
  };
  auto highPairs = [](vf x, vf y) {
    return __builtin_shufflevector(x, y, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
  };
  vf low01 = low(a[0], a[1]), high01 = high(a[0], a[1]), low23 = low(a[2], a[3]), high23 = high(a[2], a[3]);
  return lowPairs(low01, low23) + highPairs(low01, low23) + lowPairs(high01, high23) +
         highPairs(high01, high23);
}

/// R rows by eight keys, while later ones are asked for. Quarters of a sum are chains 0-3 of the
/// first four keys, chains 4-7 of them, and the same of the other four.
template <typename T, int R>
DSPARK_SIMD void halfPanel(const float *q, int64_t size, const void *const *keys, vf (&sums)[R]) {
  constexpr int kPairs = 4;
  auto row = [&](int j) { return static_cast<const T *>(keys[j]); };
  vf acc[R][kPairs] = {};
  int64_t d = 0, asked = 0;
  for (; d + 8 <= size; d += 8) {
    for (; asked * size < 8 * (d + 8); ++asked)
      for (int64_t c = 0; c < size; c += kLineElements<T>)
        ask<T>(keys[kRowsAhead + asked], c);
    vf k[kPairs];
    for (int p = 0; p < kPairs; ++p)
      k[p] = loadTwo(row(p) + d, row(p + kPairs) + d);
    for (int r = 0; r < R; ++r) {
      vf x = loadTwo(q + r * size + d, q + r * size + d);
      for (int p = 0; p < kPairs; ++p)
        acc[r][p] = fma(x, k[p], acc[r][p]);
    }
  }
  if (d < size)
    for (int p = 0; p < kPairs; ++p) {
      vf k = loadPartOfTwo(row(p) + d, row(p + kPairs) + d, size - d);
      for (int r = 0; r < R; ++r)
        acc[r][p] = fma(loadPartOfTwo(q + r * size + d, q + r * size + d, size - d), k, acc[r][p]);
    }
  for (int r = 0; r < R; ++r)
    sums[r] = sumOfQuarters(acc[r]);
}

template <typename T> struct KeyPanel {
  /// 6 x 4 sums, a vector of q and four of keys: 29 registers.
  static constexpr int kMostRows = 6;

  /// R rows by one panel.
  template <int R> static void run(const float *q, int64_t size, const void *const *keys, float *scores) {
    vf a[R], b[R];
    halfPanel<T>(q, size, keys, a);
    halfPanel<T>(q, size, keys + 8, b);
    for (int r = 0; r < R; ++r)
      store(scores + r * kKeyBlock,
            __builtin_shufflevector(a[r], b[r], 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27) +
                __builtin_shufflevector(a[r], b[r], 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30,
                                        31));
  }
};

} // namespace
} // namespace dspark
