// Tiles over a result that is a sequence of equal rows of bytes: short rows are grouped, long ones are cut.
#pragma once
#include "kernels/common/kernel.h"
#include <algorithm>

namespace dspark {

inline constexpr int64_t kTileBytes = 32768;

struct ByteTiles {
  int64_t rowBytes = 1, total = 0, tileBytes = kTileBytes;

  ByteTiles() = default;
  ByteTiles(int64_t rows, int64_t bytes) : rowBytes(std::max<int64_t>(bytes, 1)), total(rows * bytes) {
    if (rowBytes < kTileBytes)
      tileBytes = kTileBytes / rowBytes * rowBytes;
    tileBytes = std::max(tileBytes, total / (int64_t(1) << 30)); // tile numbers have 32 bits
  }
  uint32_t tiles() const { return uint32_t(std::max<int64_t>(1, (total + tileBytes - 1) / tileBytes)); }
  int64_t begin(const KernelPart &part) const { return part.begin * tileBytes; }
  int64_t end(const KernelPart &part) const { return std::min(total, part.end * tileBytes); }

  /// Calls f(row, first byte within the row, bytes) for the rows and parts of rows of these tiles.
  template <typename F> void forRows(const KernelPart &part, F f) const {
    int64_t stop = end(part);
    for (int64_t at = begin(part); at < stop;) {
      int64_t row = at / rowBytes, offset = at % rowBytes, bytes = std::min(rowBytes - offset, stop - at);
      f(row, offset, bytes);
      at += bytes;
    }
  }
};

/// How many tiles suit a kernel that can share out any number of rows: about kTileBytes each.
inline uint32_t tilesForBytes(int64_t bytes) {
  return uint32_t(std::clamp<int64_t>(bytes / kTileBytes, 1, 4096));
}

/// The share of `count` rows that belongs to these of `tiles` tiles.
struct RowRange {
  int64_t begin, end;
  RowRange(int64_t count, uint32_t tiles, const KernelPart &part)
      : begin(at(count, part.begin, tiles)), end(at(count, part.end, tiles)) {}

private:
  static int64_t at(int64_t count, int64_t tile, int64_t tiles) {
    return count / tiles * tile + count % tiles * tile / tiles;
  }
};

} // namespace dspark
