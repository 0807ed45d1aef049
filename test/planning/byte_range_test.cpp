#include "planning/ByteRange.h"
#include <cmath>
#include <gtest/gtest.h>
#include <random>

namespace dspark {
namespace {

ByteObservation observed(const std::vector<float> &values) {
  ByteObservation observation;
  observation.addExtremes(values);
  observation.addElements(values);
  return observation;
}

double squaredError(const std::vector<float> &values, const ByteRange &range) {
  double sum = 0;
  for (float x : values) {
    double q = std::clamp(std::nearbyint(double(x) / double(range.scale)) + range.zero, 0.0, 255.0);
    sum += std::pow((q - range.zero) * double(range.scale) - double(x), 2);
  }
  return sum;
}

TEST(ByteRange, HoldsZeroAndTheExtremes) {
  ByteRange range = observed({0.5f, 2.0f, 1.0f}).widest();
  EXPECT_EQ(range.zero, 0);
  EXPECT_FLOAT_EQ(range.scale, 2.0f / 255);
  range = observed({-1.0f, 3.0f}).widest();
  EXPECT_EQ(range.zero, 64);
  EXPECT_FLOAT_EQ(range.scale, 4.0f / 255);
}

TEST(ByteRange, OneOutlierInManyIsClipped) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(100000);
  for (float &x : values)
    x = normal(random);
  values[7] =
      12; // clipped at 10.8 it costs 1.4, and the others gain 1e5 * (16.4^2 - 15.2^2) / 255^2 / 12 = 4.9
  ByteObservation observation = observed(values);
  EXPECT_LT(observation.best().scale, observation.widest().scale);
  EXPECT_LT(squaredError(values, observation.best()), squaredError(values, observation.widest()));
}

TEST(ByteRange, WhatMattersIsKept) {
  // A tenth of the elements at the end of the range: clipping any of it is worse than rounding all.
  std::vector<float> values(1000, 0.01f);
  for (size_t i = 0; i < 100; ++i)
    values[i] = 10;
  ByteObservation observation = observed(values);
  EXPECT_EQ(observation.best().scale, observation.widest().scale);
}

TEST(ByteRange, UnusableAndDegenerate) {
  EXPECT_FALSE(ByteObservation().isUsable());
  EXPECT_FALSE(observed({1.0f, NAN}).isUsable());
  EXPECT_FALSE(observed({1.0f, INFINITY}).isUsable());
  ByteRange zeros = observed({0.0f, 0.0f}).best();
  EXPECT_GT(zeros.scale, 0);
  EXPECT_EQ(zeros.zero, 0);
  ByteRange wide = observed({-3e38f, 3e38f}).best();
  EXPECT_TRUE(std::isfinite(wide.scale));
  EXPECT_GE(wide.zero, 127);
}

} // namespace
} // namespace dspark
