// From a panel's sums to results (packed.h). Included once per ISA level.
#pragma once
#include "kernels/matmul/activate_loops.h"
#include "kernels/matmul/packed.h"

namespace dspark {
namespace {

using namespace simd;

/// `column` is the panel's first one of the result, sums [rows][16]. With `gate`, sums of the gate's panel,
/// the result is act(gate) * sum.
void finishPanel(const PackedTile &tile, int64_t column, const float *sums, const float *gate) {
  for (int64_t row = 0; row < tile.rows; ++row)
    for (int64_t at = 0; at < kPackedColumns && column + at < tile.columns; at += kLanes) {
      int64_t lanes = tile.columns - column - at < kLanes ? tile.columns - column - at : kLanes;
      vf v = load(sums + row * kPackedColumns + at);
      if (gate) {
        v = activated(tile.epilogue, load(gate + row * kPackedColumns + at)) * v;
      } else {
        if (tile.bias)
          v = v + loadLanes(tile.bias + column + at, lanes);
        if (tile.residual)
          v = v + loadLanes(tile.residual + row * tile.residualRow + column + at, lanes);
        v = activated(tile.epilogue, v);
      }
      storeLanes(tile.c + row * tile.cRow + column + at, v, lanes);
    }
}

} // namespace
} // namespace dspark
