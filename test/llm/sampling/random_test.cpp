#include "runtime/llm/sampling/Random.h"
#include <gtest/gtest.h>
#include <set>

using namespace dspark::llm;

namespace {

// The rows "philox4x32 10" of Random123's tests/kat_vectors.
TEST(Random, PhiloxHasThePublishedVectors) {
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, EveryPartOfTheKeyMatters) {
  std::set<double> seen;
  for (uint64_t seed : {0ull, 1ull, 1ull << 32})
    for (uint32_t sequence : {0u, 1u})
      for (uint64_t position : {0ull, 1ull, 1ull << 32})
        for (Purpose purpose : {Purpose::Token, Purpose::Accept, Purpose::Draft})
          seen.insert(uniform({seed, sequence}, position, purpose));
  EXPECT_EQ(seen.size(), size_t(3 * 2 * 3 * 3));
}

// 100,000 numbers in 100 cells: chi-square with 99 degrees of freedom exceeds 161 once in 10,000 keys.
TEST(Random, IsUniform) {
  std::array<int, 100> cells = {};
  for (uint64_t position = 0; position < 100'000; ++position) {
    const double u = uniform({42, 3}, position, Purpose::Token);
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    ++cells[size_t(u * 100)];
  }
  double chiSquare = 0;
  for (int count : cells)
    chiSquare += (count - 1000.) * (count - 1000.) / 1000;
  EXPECT_LT(chiSquare, 161);
}

} // namespace
