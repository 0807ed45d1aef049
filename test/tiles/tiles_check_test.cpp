// The check that tiles pass before they are relied on (kernels/matmul/tiles_check.cpp): it takes right tiles
// and finds wrong ones of every kind. And what the software's tiles themselves promise.
#include "kernels/common/tiles.h"
#include "kernels/matmul/bf16_parts.h"
#include "test/tiles/software_tiles.h"
#include <cmath>
#include <gtest/gtest.h>
#include <random>

namespace dspark {
namespace {

TEST(TilesCheck, TakesRightTilesAndNamesWrongProducts) {
  EXPECT_EQ(wrongTileProduct(), nullptr);
  EXPECT_TRUE(tilesWork());
  for (auto [fault, name] : {std::pair{test::TileFault::UnsignedSigned, "u8 by s8"},
                             {test::TileFault::SignedUnsigned, "s8 by u8"},
                             {test::TileFault::Bf16, "bf16"}}) {
    test::tileFaultNow = fault;
    EXPECT_STREQ(wrongTileProduct(), name);
  }
  test::tileFaultNow = test::TileFault::None;
}

TEST(TilesCheck, TilesAreGivenBack) {
  {
    TileScope tiles(Isa::Amx);
    EXPECT_EQ(test::softwareTiles[7].rows, 16);
  }
  EXPECT_EQ(test::softwareTiles[7].rows, 0);
  TileScope none(Isa::Avx512);
  EXPECT_EQ(test::softwareTiles[0].rows, 0);
  EXPECT_DEATH(zeroTile<0>(), "without a shape");
}

// Every f32 whose last part is a normal number is the sum of its parts, and parts are as small as promised.
TEST(Bf16Parts, AreExact) {
  std::mt19937 rng(1);
  for (int round = 0; round < 100000; ++round) {
    float x = __builtin_bit_cast(float, uint32_t(rng()));
    if (!(std::fabs(x) >= 0x1p-102f) || std::isinf(x))
      continue;
    Bf16Parts parts = partsOf(simd::splat(x));
    float high = simd::fromBits(parts.high)[0], middle = simd::fromBits(parts.middle)[0],
          low = simd::fromBits(parts.low)[0];
    for (int32_t bits : {parts.high[0], parts.middle[0], parts.low[0]})
      ASSERT_EQ(bits & 0xffff, 0);
    ASSERT_EQ(double(high) + double(middle) + double(low), double(x));
    double size = std::fabs(double(x));
    bool isCut = size >= double(__builtin_bit_cast(float, 0x7f7f8000)); // not rounded up to infinity
    ASSERT_LE(std::fabs(double(middle)), size * (isCut ? 0x1p-7 : 0x1p-8));
    ASSERT_LE(std::fabs(double(low)), size * (isCut ? 0x1p-15 : 0x1p-16));
  }
  Bf16Parts infinity = partsOf(simd::splat(-INFINITY));
  EXPECT_EQ(simd::fromBits(infinity.high)[0], -INFINITY);
  EXPECT_EQ(infinity.middle[0] | infinity.low[0], 0);
  Bf16Parts nan = partsOf(simd::splat(__builtin_bit_cast(float, 0xff800001)));
  EXPECT_TRUE(std::isnan(simd::fromBits(nan.high)[0]));
}

} // namespace
} // namespace dspark
