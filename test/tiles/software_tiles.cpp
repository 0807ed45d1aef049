#include "test/tiles/software_tiles.h"
#include "kernels/common/tiles.h"

namespace dspark {

thread_local test::SoftwareTile test::softwareTiles[8];
test::TileFault test::tileFaultNow = test::TileFault::None;

void loadTileShapes(TileDepth depth) {
  bool isHalf = depth == TileDepth::Half;
  for (int i = 0; i < 8; ++i) {
    test::SoftwareTile tile;
    tile.rows = isHalf && i >= 6 ? kTileRows / 2 : kTileRows;
    tile.rowBytes = isHalf && (i == 4 || i == 5) ? kTileBytes / 2 : kTileBytes;
    test::softwareTiles[i] = tile;
  }
}
void releaseTiles() {
  for (test::SoftwareTile &tile : test::softwareTiles)
    tile = {};
}

} // namespace dspark
