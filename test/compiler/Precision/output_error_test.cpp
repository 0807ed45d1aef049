#include "tools/dspark-compile/OutputError.h"
#include <cmath>
#include <gtest/gtest.h>

namespace dspark {
namespace {

double errorOf(ErrorMetric metric, std::vector<float> found, std::vector<float> expected, int64_t width) {
  return outputError(metric, {{{std::move(found), width}}}, {{{std::move(expected), width}}});
}

TEST(OutputError, RelativeIsEuclidean) {
  EXPECT_NEAR(errorOf(ErrorMetric::Relative, {3, 4, 1}, {3, 4, 0}, 3), 0.2, 1e-12);
  EXPECT_EQ(errorOf(ErrorMetric::Relative, {1}, {1}, 1), 0);
  EXPECT_EQ(errorOf(ErrorMetric::Relative, {1}, {0}, 1), INFINITY);
}

TEST(OutputError, OfTheWorstOutputOverAllSets) {
  OutputRows right{{1, 0}, 2}, off{{1, 0.5f}, 2};
  // The second output is off in one of two sets: 0.5 / sqrt(2).
  EXPECT_NEAR(
      outputError(ErrorMetric::Relative, {{right, off}, {right, right}}, {{right, right}, {right, right}}),
      0.5 / std::sqrt(2.0), 1e-12);
}

TEST(OutputError, Top1CountsRowsThatAnswerOtherwise) {
  EXPECT_EQ(errorOf(ErrorMetric::Top1, {2, 1, 1, 2}, {1, 0, 1, 0}, 2), 0.5);
  EXPECT_EQ(errorOf(ErrorMetric::Top1, {1, 2}, {5, 5}, 2), 0) << "both are the answer of a tie";
}

TEST(OutputError, KlOfSoftmax) {
  // softmax of {ln 3, 0} is {3/4, 1/4}, of {0, 0} a half each.
  double expected = 0.75 * std::log(0.75 / 0.5) + 0.25 * std::log(0.25 / 0.5);
  EXPECT_NEAR(errorOf(ErrorMetric::Kl, {0, 0}, {std::log(3.0f), 0}, 2), expected, 1e-7);
  EXPECT_NEAR(errorOf(ErrorMetric::Kl, {7, 7 - INFINITY}, {0, -INFINITY}, 2), 0, 1e-12) << "a masked class";
}

TEST(OutputError, WhatIsNotFiniteMustBeTheSame) {
  for (ErrorMetric metric : {ErrorMetric::Relative, ErrorMetric::Top1, ErrorMetric::Kl}) {
    EXPECT_EQ(errorOf(metric, {NAN, 1}, {0, 1}, 2), INFINITY);
    EXPECT_EQ(errorOf(metric, {NAN, 1}, {NAN, 1}, 2), 0);
    EXPECT_EQ(errorOf(metric, {1}, {1, 1}, 1), INFINITY) << "another size";
  }
}

TEST(ErrorBound, Parse) {
  EXPECT_EQ(ErrorBound::parse("0.01")->metric, ErrorMetric::Relative);
  EXPECT_EQ(ErrorBound::parse("kl=1e-3")->most, 1e-3);
  EXPECT_EQ(ErrorBound::parse("top1=0")->metric, ErrorMetric::Top1);
  for (const char *text : {"", "=", "kl", "kl=", "rms=1", "-0.1", "11", "nan", "1 ", "0,1"})
    EXPECT_FALSE(ErrorBound::parse(text).isOk()) << text;
}

} // namespace
} // namespace dspark
