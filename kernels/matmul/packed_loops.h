// The tiles of packed.h, included once per ISA level.
#pragma once
#include "kernels/common/contract.h"
#include "kernels/matmul/packed_finish.h"
#include "kernels/matmul/packed_float.h"
#include "kernels/matmul/packed_int8.h"
#include "kernels/matmul/packed_quantize.h"

namespace dspark {
namespace {

void panelSums(const PackedTile &tile, int64_t panel, float *sums) {
  const uint8_t *bytes = tile.panels + panel * tile.panelBytes;
  if (tile.isInt8)
    int8Panel(tile, bytes, sums);
  else
    floatPanel(tile, bytes, sums);
}

template <auto PanelSums> void packedTile(const PackedTile &tile) {
  DSPARK_EXPECTS(tile.rows >= 0 && tile.rows <= kPackedRows && tile.k >= 0 && tile.scratch);
  DSPARK_EXPECTS(isReadable(tile.panels, tile.columns) && isReadable(tile.c, tile.rows * tile.columns));
  DSPARK_EXPECTS(tile.cRow >= tile.columns || tile.rows <= 1);
  float *sums = tile.scratch, *gate = sums + kPackedRows * kPackedColumns;
  for (int64_t column = 0, panel = 0; column < tile.columns; column += kPackedColumns) {
    if (tile.isGated)
      PanelSums(tile, panel++, gate);
    PanelSums(tile, panel++, sums);
    finishPanel(tile, column, sums, tile.isGated ? gate : nullptr);
  }
}

} // namespace
} // namespace dspark
