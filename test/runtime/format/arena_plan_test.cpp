#include "runtime/format/ArenaPlan.h"
#include <gtest/gtest.h>
#include <random>

namespace dspark {
namespace {

void expectDisjoint(const std::vector<ArenaBuffer> &buffers, int64_t bytes) {
  for (size_t i = 0; i < buffers.size(); ++i) {
    const ArenaBuffer &a = buffers[i];
    EXPECT_EQ(a.offset % kArenaAlignment, 0);
    EXPECT_LE(a.offset + a.bytes, bytes);
    for (size_t j = 0; j < i; ++j) {
      const ArenaBuffer &b = buffers[j];
      bool inTime = a.first <= b.last && b.first <= a.last;
      bool inSpace = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
      EXPECT_FALSE(inTime && inSpace && a.bytes && b.bytes) << i << " and " << j;
    }
  }
}

TEST(ArenaPlan, Empty) {
  std::vector<ArenaBuffer> none;
  EXPECT_EQ(planArena(none).bytes, 0);
}

TEST(ArenaPlan, ChainTakesTwoBuffers) {
  std::vector<ArenaBuffer> buffers;
  for (int i = 0; i < 10; ++i)
    buffers.push_back({1000, i, i + 1});
  ArenaPlan plan = planArena(buffers);
  EXPECT_EQ(plan.lowerBound, 2 * 1024);
  EXPECT_EQ(plan.bytes, plan.lowerBound);
  expectDisjoint(buffers, plan.bytes);
}

TEST(ArenaPlan, KeepsFixedPlaces) {
  std::vector<ArenaBuffer> buffers = {{64, 0, 9, 128}, {128, 0, 5}, {64, 3, 9}};
  ArenaPlan plan = planArena(buffers);
  EXPECT_EQ(buffers[0].offset, 128);
  EXPECT_EQ(buffers[1].offset, 0);
  EXPECT_EQ(buffers[2].offset, 192);
  expectDisjoint(buffers, plan.bytes);
}

TEST(ArenaPlan, ManyStepsTakeNoTime) {
  std::vector<ArenaBuffer> buffers;
  for (int i = 0; i < 20'000; ++i)
    buffers.push_back({64 << (i % 11), i, i + 1 + (i % 97 == 0 ? 500 : 0)});
  ArenaPlan plan = planArena(buffers);
  EXPECT_LE(double(plan.bytes), 1.3 * double(plan.lowerBound));
}

TEST(ArenaPlan, EverythingAliveAtOnce) {
  std::vector<ArenaBuffer> buffers;
  for (int i = 0; i < 6'000; ++i)
    buffers.push_back({64, i, 6'000});
  ArenaPlan plan = planArena(buffers);
  EXPECT_EQ(plan.bytes, 6'000 * 64);
  EXPECT_EQ(plan.bytes, plan.lowerBound);
}

// Lifetimes as networks have them: mostly chains, with skips of a few to dozens of steps, and sizes that
// shrink with depth in powers of two.
TEST(ArenaPlan, NearTheLargestLiveSet) {
  std::mt19937 random(7);
  auto uniform = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  for (int round = 0; round < 200; ++round) {
    int steps = uniform(5, 300);
    std::vector<ArenaBuffer> buffers;
    for (int i = 0; i < steps; ++i) {
      int span = uniform(0, 9) < 7 ? 1 : uniform(0, 9) < 7 ? uniform(2, 6) : uniform(6, 60);
      int64_t bytes = (int64_t(1) << uniform(12, 20)) >> (4 * i / steps);
      buffers.push_back({bytes * uniform(2, 4) / 2, i, std::min(i + span, steps)});
    }
    ArenaPlan plan = planArena(buffers);
    EXPECT_LE(double(plan.bytes), 1.3 * double(plan.lowerBound)) << "round " << round << ", steps " << steps;
    expectDisjoint(buffers, plan.bytes);
  }
}

} // namespace
} // namespace dspark
