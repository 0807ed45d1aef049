// AMX: eight tiles of 16 rows by 64 bytes, and instructions that add the product of two of them to a third.
// Tiles belong to a thread and hold nothing until they are given a shape, and while they hold something every
// change of threads saves 8 KiB. So a kernel's share of work begins and ends with a TileScope.
//
// Files named *_amx.cpp write loops over the functions of kernels/common/tile_instructions.h. The tests
// include the same loops behind tiles in software (test/tiles/software_tiles.h), so that every machine runs
// them.
#pragma once
#include "kernels/common/isa.h"

namespace dspark {

inline constexpr int kTileRows = 16, kTileBytes = 64; // of one tile; a row has 16 sums of 32 bits

/// How many bytes of A's rows a product takes. Whole: all tiles are of full size. Half: tiles 4 and 5 have
/// rows of 32 bytes, tiles 6 and 7 have 8 rows.
enum class TileDepth : uint8_t { Whole, Half };

/// Gives this thread's tiles their shapes (and zeros); takes the tiles away again. At level Amx only.
void loadTileShapes(TileDepth depth);
void releaseTiles();

/// Whether tiles compute what they should: the first call runs the products of level Amx on small operands
/// and compares them with scalar sums, integers exactly, which takes some microseconds. If they differ it
/// says so on stderr, and this process does without tiles. At level Amx only.
bool tilesWork();

/// What tilesWork() found: the kind of product that differs, or null.
const char *wrongTileProduct();

/// The tiles of this thread, while it lives; nothing at lower levels.
class TileScope {
public:
  explicit TileScope(Isa isa, TileDepth depth = TileDepth::Whole) : isLoaded(isa == Isa::Amx) {
    if (isLoaded)
      loadTileShapes(depth);
  }
  ~TileScope() {
    if (isLoaded)
      releaseTiles();
  }
  TileScope(const TileScope &) = delete;

private:
  bool isLoaded;
};

} // namespace dspark
