// Products with at most four columns, where a panel of 16 would leave most lanes idle: lanes run along K
// instead, and each sum is added up across its vector at the end. Included once per ISA level.
#pragma once
#include "kernels/matmul/activate_loops.h"
#include "kernels/matmul/gemm.h"

namespace dspark {
namespace {

// Terms of one tap's row of weights, up to whole vectors.
DSPARK_SIMD int64_t paddedDepth(int64_t depth) { return (depth + kPanel - 1) / kPanel * kPanel; }

DSPARK_SIMD float addLanes(vf v) {
#if defined(__AVX512F__)
  typedef float v8 __attribute__((ext_vector_type(8)));
  v8 eight = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
             __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
#else
  auto eight = v;
#endif
#if defined(__AVX2__)
  typedef float v4 __attribute__((ext_vector_type(4)));
  v4 four =
      __builtin_shufflevector(eight, eight, 0, 1, 2, 3) + __builtin_shufflevector(eight, eight, 4, 5, 6, 7);
#else
  auto four = eight;
#endif
  return (four[0] + four[2]) + (four[1] + four[3]);
}

// R rows by N columns.
template <int R, int N> __attribute__((noinline)) void narrowRows(const GemmTile &tile, int64_t row) {
  vf sum[R][N];
  each(sum, [](vf) { return splat(0); });
  int64_t step = paddedDepth(tile.depth), whole = tile.depth / kLanes * kLanes;
  const float *w = tile.narrow;
  for (int64_t t = 0; t < tile.taps; ++t, w += N * step) {
    const float *a[R];
    unroll<R>(DSPARK_LAMBDA { a[i] = tile.a[t * tile.aStride + row + i]; });
    auto add = [&](int64_t k, auto read) __attribute__((always_inline)) {
      vf weight[N];
      unroll<N>(DSPARK_LAMBDA { weight[i] = load(w + i * step + k); });
      unroll<R>([&](auto r) __attribute__((always_inline)) {
        vf x = read(a[r] + k);
        unroll<N>(DSPARK_LAMBDA { sum[r][i] = fma(x, weight[i], sum[r][i]); });
      });
    };
    for (int64_t k = 0; k < whole; k += kLanes)
      add(k, [](const float *p) { return load(p); });
    if (whole < tile.depth)
      add(whole, [&](const float *p) { return loadLanes(p, tile.depth - whole); });
  }
  constexpr int kValues = (R * N + kLanes - 1) / kLanes * kLanes;
  float values[kValues] = {};
  unroll<R * N>(DSPARK_LAMBDA {
    float value = addLanes(sum[i / N][i % N]);
    if (tile.scale)
      value *= tile.scale[i % N];
    if (tile.bias)
      value += tile.bias[i % N];
    if (tile.residual)
      value += tile.residual[(tile.c[row + i / N] - tile.c[0]) + i % N];
    values[i] = value;
  });
  activateBuffer(values, kValues, tile.epilogue);
  unroll<R * N>(DSPARK_LAMBDA { tile.c[row + i / N][i % N] = values[i]; });
}

// R rows at a time keep eight sums or more under way.
template <int N, int R> void narrowColumns(const GemmTile &tile) {
  int64_t row = 0;
  for (; row + R <= tile.rows; row += R)
    narrowRows<R, N>(tile, row);
  for (; row < tile.rows; ++row)
    narrowRows<1, N>(tile, row);
}

// Weights from the panel [terms][16] to [tap][column][depth], zero beyond depth.
void turnWeights(const GemmTile &tile) {
  int64_t step = paddedDepth(tile.depth);
  float *w = tile.narrow;
  for (int64_t t = 0; t < tile.taps; ++t)
    for (int64_t column = 0; column < tile.columns; ++column, w += step) {
      const float *b = tile.b + (tile.tapOffset ? tile.tapOffset[t] : t * tile.depth * kPanel) + column;
      for (int64_t k = 0; k < step; ++k)
        w[k] = k < tile.depth ? b[k * kPanel] : 0;
    }
}

void narrowTile(const GemmTile &tile) {
  turnWeights(tile);
  if (tile.columns == 1)
    narrowColumns<1, 8>(tile);
  else if (tile.columns == 2)
    narrowColumns<2, 4>(tile);
  else if (tile.columns == 3)
    narrowColumns<3, 4>(tile);
  else
    narrowColumns<4, 2>(tile);
}

} // namespace
} // namespace dspark
