#include "tools/dspark-bench/Compare.h"
#include <gtest/gtest.h>

namespace dspark {
namespace {

TEST(RatioInterval, IsThatOfThePairs) {
  // A disturbance that both meet leaves the ratio alone, one that one of them meets is not the median.
  std::vector<double> first, second;
  for (int i = 0; i < 40; ++i) {
    double disturbed = i % 7 == 0 ? 5 : 1;
    first.push_back(disturbed);
    second.push_back(2 * disturbed * (i == 3 ? 10 : 1));
  }
  RatioInterval interval = ratioInterval(first, second);
  EXPECT_EQ(interval.ratio, 2);
  EXPECT_EQ(interval.low, 2);
  EXPECT_EQ(interval.high, 2);
}

TEST(RatioInterval, GrowsWithTheSpread) {
  std::vector<double> first(41, 1.0), second;
  for (int i = 0; i < 41; ++i)
    second.push_back(0.8 + 0.01 * i);
  RatioInterval interval = ratioInterval(first, second);
  EXPECT_DOUBLE_EQ(interval.ratio, 1.0);
  EXPECT_LT(interval.low, 1.0);
  EXPECT_GT(interval.high, 1.0);
  RatioInterval again = ratioInterval(first, second);
  EXPECT_EQ(again.low, interval.low);
}

} // namespace
} // namespace dspark
