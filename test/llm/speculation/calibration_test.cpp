// From what drafters claim to what happens: temperatures per position, offsets and tables that learn.
#include "ToyDecoding.h"
#include "runtime/llm/speculation/AcceptanceEstimator.h"
#include <gmock/gmock.h>

namespace dspark::llm {
namespace {
using testing::HasSubstr;
using toy::keyed;

/// Drafts of 4 whose logits are `overconfidence[k]` times what they should be.
std::vector<CalibrationRecord> records(std::vector<float> overconfidence, size_t count) {
  std::vector<CalibrationRecord> all;
  for (uint64_t i = 0; i < count; ++i) {
    CalibrationRecord record;
    bool isAccepted = true;
    for (uint64_t k = 0; k < overconfidence.size(); ++k) {
      const float z = float(4 * keyed({i, k, 1}) - 1);
      record.confidence.push_back(sigmoid(z * overconfidence[k]));
      if (!isAccepted)
        continue;
      ++record.judged;
      isAccepted = keyed({i, k, 2}) < sigmoid(z);
      record.accepted += isAccepted;
    }
    all.push_back(record);
  }
  return all;
}

double errorAt(size_t k, const TemperatureScaling &scaling, const std::vector<CalibrationRecord> &all) {
  std::vector<float> predicted;
  std::vector<uint8_t> happened;
  for (const CalibrationRecord &record : all) {
    float product = 1;
    for (size_t j = 0; j <= k; ++j)
      product *= scaling.calibrated(record.confidence[j], j);
    predicted.push_back(product);
    happened.push_back(record.accepted > int32_t(k));
  }
  return expectedCalibrationError(predicted, happened);
}

TEST(TemperatureScaling, recoversTheTemperatureOfEachPosition) {
  const std::vector<float> truth = {1, 2, 0.5f, 4};
  const auto all = records(truth, 20000);
  const TemperatureScaling scaling = TemperatureScaling::fit(all);
  ASSERT_EQ(scaling.temperatures().size(), 4u);
  for (size_t k = 0; k < 4; ++k)
    // The grid's step is 9 %; the rest is what 20,000 outcomes leave open.
    EXPECT_NEAR(std::log(scaling.temperatures()[k] / truth[k]), 0, 0.2) << k;
  const auto heldOut = records(truth, 40000);
  for (size_t k = 0; k < 4; ++k) {
    EXPECT_LT(errorAt(k, scaling, heldOut), 0.02) << k;
    if (truth[k] >= 2)
      EXPECT_GT(errorAt(k, {}, heldOut), 2 * errorAt(k, scaling, heldOut)) << k;
  }
}

TEST(TemperatureScaling, endedDraftsTellNothingOfWhatCameAfter) {
  auto all = records({2, 2}, 20000);
  const auto whole = TemperatureScaling::fit(all).temperatures();
  for (size_t i = 0; i < all.size(); i += 20) // some sequences ended after their first, accepted draft
    if (all[i].accepted > 0)
      all[i].judged = all[i].accepted = 1;
  const auto cut = TemperatureScaling::fit(all).temperatures();
  EXPECT_EQ(cut[0], whole[0]);
  EXPECT_NEAR(std::log(cut[1] / whole[1]), 0, 0.1) << "one step of the grid";
}

TEST(TemperatureScaling, textGoesBothWaysAndIsChecked) {
  const TemperatureScaling scaling = TemperatureScaling::fit(records({1, 3}, 2000));
  const auto back = TemperatureScaling::fromJson(scaling.toJson());
  ASSERT_TRUE(back.isOk());
  EXPECT_EQ(back->temperatures(), scaling.temperatures());
  EXPECT_EQ(back->calibrated(0.9f, 7), scaling.calibrated(0.9f, 1)) << "beyond the last: the last";
  EXPECT_EQ(TemperatureScaling().calibrated(0.9f, 0), 0.9f);
  EXPECT_TRUE(TemperatureScaling::fit({}).temperatures().empty());
  const auto refusal = [](const char *text) { return TemperatureScaling::fromJson(text).status().message(); };
  EXPECT_THAT(refusal("nonsense"), HasSubstr("an object with an array \"temperatures\""));
  EXPECT_THAT(refusal(R"({"temperatures": [1, 0]})"), HasSubstr("temperature 1 of drafts: expected"));
  EXPECT_THAT(refusal(R"({"temperatures": ["1"]})"), HasSubstr("found \"1\""));
}

TEST(OnlineBias, learnsTheOffsetAndFollowsItsChange) {
  OnlineBias bias(1, 100);
  double mean = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    bias.learn(0.5f, keyed({i}) < 0.8);
    if (i >= 500)
      mean += bias.corrected(0.5f) / 500;
  }
  EXPECT_NEAR(mean, 0.8, 0.03);
  EXPECT_LT(bias.uncertainty(), 0.3f);
  for (uint64_t i = 0; i < 300; ++i)
    bias.learn(0.5f, keyed({i}) < 0.2);
  EXPECT_NEAR(bias.corrected(0.5f), 0.2, 0.15);
  for (int i = 0; i < 10000; ++i)
    bias.learn(0.5f, true);
  EXPECT_LT(bias.corrected(0.5f), 1) << "never beyond correction";
}

TEST(AcceptanceTable, cellsLearnAndNeighboursAreTheirPrior) {
  AcceptanceTable table;
  EXPECT_FLOAT_EQ(table.estimate(0, 0), 0.5f);
  EXPECT_GT(table.estimate(5, 0), table.estimate(2, 0))
      << "longer matches are better before anything is known";
  EXPECT_GT(table.estimate(5, 3), table.estimate(5, 0));
  for (uint64_t i = 0; i < 400; ++i) {
    table.learn(2, 0, keyed({i, 1}) < 0.2);
    table.learn(9, 0, keyed({i, 2}) < 0.9);
    table.learn(9, 1, keyed({i, 3}) < 0.6);
  }
  EXPECT_NEAR(table.estimate(2, 0), 0.2, 0.1);
  EXPECT_NEAR(table.estimate(9, 0), 0.9, 0.1);
  EXPECT_NEAR(table.estimate(9, 1), 0.6, 0.1);
  EXPECT_NEAR(table.estimate(9, 2), table.estimate(9, 1), 0.1) << "unseen positions go on as the last seen";
  EXPECT_FLOAT_EQ(table.estimate(12, 0), table.estimate(9, 0)) << "9 to 12 are one class";
  EXPECT_NEAR(table.estimate(100, 0), table.estimate(9, 0), 0.1) << "unseen matches as the next weaker";
  for (int i = 0; i < 1000; ++i)
    table.learn(9, 0, false);
  EXPECT_LT(table.estimate(9, 0), 0.05f) << "and what was forgotten does not come back";
  EXPECT_GT(table.estimate(1 << 30, 1 << 30), 0);
  EXPECT_GT(table.estimate(-1, 40), 0);
}

TEST(AcceptanceEstimator, calibratesLearnsPerSequenceAndIsCautiousWhenAsked) {
  AcceptanceEstimator estimator;
  const Draft draft{.tokens = {1, 2}, .drawnFrom = {}, .confidence = {0.6f, 0.6f}};
  EXPECT_NEAR(estimator.estimate(1, draft)[0], 0.6, 1e-5);
  EXPECT_LT(estimator.estimate(1, draft, true)[0], 0.45f) << "nothing is known of the sequence yet";
  for (int i = 0; i < 60; ++i)
    estimator.learn(1, draft, {.judged = 2, .accepted = 2, .committed = 3});
  EXPECT_GT(estimator.estimate(1, draft)[0], 0.85f);
  EXPECT_GT(estimator.estimate(1, draft)[0], estimator.estimate(2, draft)[0]) << "more than for others";
  EXPECT_GT(estimator.estimate(2, draft)[0], 0.6f) << "but some for them too";
}

TEST(AcceptanceEstimator, expectsOfADraftWhatEarlierOnesPromised) {
  AcceptanceEstimator estimator;
  EXPECT_NEAR(estimator.expected(5, 3)[2], 0.7, 1e-5) << "before any draft";
  estimator.drafted(1, {.tokens = {1, 2}, .drawnFrom = {}, .confidence = {0.9f, 0.5f}});
  EXPECT_NEAR(estimator.expected(1, 4)[0], 0.9, 1e-5);
  EXPECT_NEAR(estimator.expected(1, 4)[1], 0.5, 1e-5);
  EXPECT_NEAR(estimator.expected(1, 4)[3], 0.5, 1e-5) << "further on as at the last";
  EXPECT_NEAR(estimator.expected(9, 4)[1], 0.5, 1e-5) << "of others as of all";
  for (int i = 0; i < 100; ++i) // shorter drafts now, and better: what they do not reach fades towards them
    estimator.drafted(1, {.tokens = {1}, .drawnFrom = {}, .confidence = {0.95f}});
  EXPECT_NEAR(estimator.expected(1, 2)[1], 0.95, 0.01);
  const float before = estimator.expected(9, 1)[0];
  estimator.forget(1);
  EXPECT_EQ(estimator.expected(1, 1)[0], before);
}

} // namespace
} // namespace dspark::llm
