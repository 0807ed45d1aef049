#include "runtime/adapt/ThreadChoice.h"
#include <gtest/gtest.h>

namespace dspark {
namespace {

TEST(ThreadChoice, StartsFromThePredictionPerShape) {
  ThreadPool pool(2);
  ThreadChoice choice(pool);
  EXPECT_FALSE(choice.knows(7));
  choice.seed(7, 1e-5, 3e-5); // small: waking the others costs more
  choice.seed(8, 1e-2, 6e-3);
  EXPECT_TRUE(choice.knows(7));
  EXPECT_TRUE(choice.isSerial(7));
  choice.report(1e-5);
  EXPECT_FALSE(choice.isSerial(8));
  choice.report(6e-3);
  EXPECT_TRUE(choice.takeEvents().empty());
}

// Measured times decide against the prediction, and one change is logged.
TEST(ThreadChoice, FollowsWhatIsMeasured) {
  ThreadPool pool(2);
  ThreadChoice choice(pool);
  choice.seed(1, 1e-3, 1.2e-3);
  int serial = 0;
  for (int run = 0; run < 1000; ++run) {
    bool isSerial = choice.isSerial(1);
    choice.report(isSerial ? 1e-3 : 0.6e-3);
    serial += run >= 600 && isSerial;
  }
  EXPECT_LE(serial, 4); // explored: one run in a hundred
  std::vector<AdaptEvent> events = choice.takeEvents();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].from, std::vector<int>{0});
  EXPECT_EQ(events[0].to, std::vector<int>{1});
  EXPECT_NEAR(events[0].fromSeconds, 1e-3, 1e-9);
  EXPECT_NEAR(events[0].toSeconds, 0.6e-3, 1e-9);
  EXPECT_TRUE(choice.takeEvents().empty());
}

} // namespace
} // namespace dspark
