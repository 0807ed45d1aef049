// AMX tiles in software, under the names of kernels/common/tile_instructions.h: what Intel's manual defines
// for each instruction, in its order of sums. A use of tiles that no TileScope gave shapes to, or whose
// shapes do not fit each other, ends the test.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace dspark::test {

struct SoftwareTile {
  int rows = 0, rowBytes = 0; // no shape
  uint8_t bytes[16][64] = {};
};
extern thread_local SoftwareTile softwareTiles[8];

/// A product that is to be wrong, for the test of those who should notice.
enum class TileFault { None, UnsignedSigned, SignedUnsigned, Bf16 };
extern TileFault tileFaultNow;

[[noreturn]] inline void tileTrap(const char *what) {
  std::fprintf(stderr, "tiles: %s\n", what);
  std::abort();
}
inline SoftwareTile &shapedTile(int number) {
  SoftwareTile &tile = softwareTiles[number];
  if (tile.rows == 0)
    tileTrap("used without a shape");
  return tile;
}

template <typename T> T laneOf(const SoftwareTile &tile, int row, int lane) {
  T value;
  std::memcpy(&value, &tile.bytes[row][size_t(lane) * sizeof(T)], sizeof(T));
  return value;
}
template <typename T> void setLane(SoftwareTile &tile, int row, int lane, T value) {
  std::memcpy(&tile.bytes[row][size_t(lane) * sizeof(T)], &value, sizeof(T));
}

inline void checkProduct(const SoftwareTile &sum, const SoftwareTile &a, const SoftwareTile &b) {
  if (sum.rows != a.rows || sum.rowBytes != b.rowBytes || a.rowBytes != 4 * b.rows)
    tileTrap("shapes of a product do not fit");
}

template <typename A, typename B> void dotBytes(int sumTile, int aTile, int bTile) {
  SoftwareTile &sum = shapedTile(sumTile);
  const SoftwareTile &a = shapedTile(aTile), &b = shapedTile(bTile);
  checkProduct(sum, a, b);
  for (int row = 0; row < sum.rows; ++row)
    for (int column = 0; column < sum.rowBytes / 4; ++column) {
      auto total = laneOf<uint32_t>(sum, row, column);
      for (int term = 0; term < a.rowBytes; ++term)
        total += uint32_t(int32_t(laneOf<A>(a, row, term)) *
                          int32_t(laneOf<B>(b, term / 4, column * 4 + term % 4)));
      setLane(sum, row, column, total);
    }
}

/// Numbers too small to be normal become zero, before and after every operation.
inline float flushed(float x) { return __builtin_fabsf(x) < 0x1p-126f ? __builtin_copysignf(0, x) : x; }
inline float bf16Lane(const SoftwareTile &tile, int row, int lane) {
  return flushed(__builtin_bit_cast(float, uint32_t(laneOf<uint16_t>(tile, row, lane)) << 16));
}

inline void dotBf16Tiles(int sumTile, int aTile, int bTile) {
  SoftwareTile &sum = shapedTile(sumTile);
  const SoftwareTile &a = shapedTile(aTile), &b = shapedTile(bTile);
  checkProduct(sum, a, b);
  for (int row = 0; row < sum.rows; ++row)
    for (int column = 0; column < sum.rowBytes / 4; ++column) {
      float halves[2] = {};
      for (int pair = 0; pair < a.rowBytes / 4; ++pair)
        for (int i = 0; i < 2; ++i)
          halves[i] = flushed(
              __builtin_fmaf(bf16Lane(a, row, 2 * pair + i), bf16Lane(b, pair, 2 * column + i), halves[i]));
      float both = flushed(halves[0] + halves[1]);
      setLane(sum, row, column, flushed(flushed(laneOf<float>(sum, row, column)) + both));
    }
}

inline void loadTileRows(int number, const void *from, int64_t stride) {
  SoftwareTile &tile = shapedTile(number);
  std::memset(tile.bytes, 0, sizeof(tile.bytes));
  for (int row = 0; row < tile.rows; ++row)
    std::memcpy(tile.bytes[row], static_cast<const uint8_t *>(from) + row * stride, size_t(tile.rowBytes));
}
inline void storeTileRows(int number, void *to, int64_t stride) {
  const SoftwareTile &tile = shapedTile(number);
  for (int row = 0; row < tile.rows; ++row)
    std::memcpy(static_cast<uint8_t *>(to) + row * stride, tile.bytes[row], size_t(tile.rowBytes));
}

} // namespace dspark::test

namespace dspark {
namespace {

template <int T> void zeroTile() {
  test::SoftwareTile &tile = test::shapedTile(T);
  std::memset(tile.bytes, 0, sizeof(tile.bytes));
}
template <int T> void loadTile(const void *from, int64_t stride) { test::loadTileRows(T, from, stride); }
template <int T> void storeTile(void *to, int64_t stride) { test::storeTileRows(T, to, stride); }
template <int Sum, int A, int B> void dotUnsignedSigned() {
  test::tileFaultNow == test::TileFault::UnsignedSigned ? test::dotBytes<uint8_t, uint8_t>(Sum, A, B)
                                                        : test::dotBytes<uint8_t, int8_t>(Sum, A, B);
}
template <int Sum, int A, int B> void dotSignedUnsigned() {
  test::tileFaultNow == test::TileFault::SignedUnsigned ? test::dotBytes<uint8_t, uint8_t>(Sum, A, B)
                                                        : test::dotBytes<int8_t, uint8_t>(Sum, A, B);
}
template <int Sum, int A, int B> void dotBf16() {
  // Wrong: what is accumulated is doubled.
  test::dotBf16Tiles(Sum, A, B);
  if (test::tileFaultNow == test::TileFault::Bf16)
    test::dotBf16Tiles(Sum, A, B);
}

} // namespace
} // namespace dspark
