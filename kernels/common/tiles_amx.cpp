#include "kernels/common/tiles.h"
#include <immintrin.h>

namespace dspark {
namespace {

// What ldtilecfg reads: 64 bytes.
struct TileShapes {
  uint8_t palette, startRow, reserved[14];
  uint16_t rowBytes[16];
  uint8_t rows[16];
};
static_assert(sizeof(TileShapes) == 64);

} // namespace

void loadTileShapes(TileDepth depth) {
  alignas(64) TileShapes shapes = {};
  shapes.palette = 1;
  for (int tile = 0; tile < 8; ++tile) {
    bool isHalf = depth == TileDepth::Half;
    shapes.rows[tile] = uint8_t(isHalf && tile >= 6 ? kTileRows / 2 : kTileRows);
    shapes.rowBytes[tile] = uint16_t(isHalf && (tile == 4 || tile == 5) ? kTileBytes / 2 : kTileBytes);
  }
  _tile_loadconfig(&shapes);
}

void releaseTiles() { _tile_release(); }

} // namespace dspark
