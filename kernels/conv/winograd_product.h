// The products of Winograd's transforms of f32: one per point of the transform, of the tiles' transformed
// inputs with the transformed filters of some panels.
#pragma once
#include "kernels/matmul/gemm.h"

namespace dspark {

inline constexpr int64_t kWinogradRows = 96; // tiles of one product at most

struct WinogradProduct {
  const GemmOps &gemm;
  const float *inputs; // the first tile's row of the first point's matrix
  int64_t inputRow, inputPoint;
  float *products; // the same of the results
  int64_t productRow, productPoint;
  int64_t rows, depth, columns;
  int64_t panelStride; // floats from a point's filters of one panel to those of the next

  /// The product at one point, whose filters lie at `filters`.
  void run(int64_t point, const float *filters) const {
    const float *a[kWinogradRows];
    float *c[kWinogradRows];
    for (int64_t r = 0; r < rows; ++r) {
      a[r] = inputs + point * inputPoint + r * inputRow;
      c[r] = products + point * productPoint + r * productRow;
    }
    GemmTile tile = {};
    tile.a = a;
    tile.aStride = rows;
    tile.c = c;
    tile.rows = rows;
    tile.taps = 1;
    tile.depth = depth;
    tile.b = filters;
    tile.panelStride = panelStride;
    tile.columns = columns;
    gemm.tile(tile);
  }
};

} // namespace dspark
