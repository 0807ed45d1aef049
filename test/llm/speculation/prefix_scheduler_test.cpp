// The scheduler's numbers, its order, and the paper's example of why it must not look ahead.
#include "ToyDecoding.h"
#include "runtime/llm/speculation/PrefixScheduler.h"
#include <gmock/gmock.h>

namespace dspark::llm {
namespace {
using namespace toy;
using testing::ElementsAre;

// The DSpark paper's appendix A: steps per second 1, 0.5, 0.45.
const StepSeconds kJagged = {1, 2, 1 / 0.45};
const std::vector<double> kForecast = {0.8, 0.7}; // the first pays together with such a second

TEST(PrefixScheduler, earlyStopStopsWhereThePaperSays) {
  const std::vector<Estimates> sure{{0.8f, 0.9f}}, unsure{{0.8f, 0.0f}};
  EXPECT_EQ(scheduleEarlyStop(sure, kJagged).drafts, 0);
  EXPECT_EQ(scheduleEarlyStop(unsure, kJagged).drafts, 0);
  EXPECT_EQ(scheduleEarlyStop(sure, kJagged, kForecast).drafts, 2);
  EXPECT_EQ(scheduleEarlyStop(unsure, kJagged, kForecast).drafts, 1) << "the first alike for both";
  EXPECT_EQ(scheduleBest(sure, kJagged).drafts, 2);
  EXPECT_EQ(scheduleBest(unsure, kJagged).drafts, 0);
  EXPECT_NEAR(scheduleBest(sure, kJagged).tokensPerSecond, 1.134, 1e-6);
}

/// The example decoded: token 1 drawn from (.5, .5) where the model says (.7, .3); token 0 promises a good
/// second draft, token 1 a hopeless one. Returns the share of first tokens that are 0.
template <typename Scheduler> double shareOfFirst(Scheduler schedule) {
  const Distribution p{{0, 1}, {0.7f, 0.3f}}, q{{0, 1}, {0.5f, 0.5f}};
  struct Fixed : VerifiedSequence {
    explicit Fixed(const Distribution &p, uint64_t seed) : p(p), seed(seed) {}
    StatusOr<int32_t> drawn(size_t row) override { return drawnFrom(p, row); }
    StatusOr<const Distribution *> distribution(size_t) override { return &p; }
    int32_t drawnFrom(const Distribution &from, size_t row) override {
      return drawByCumulation(from, keyed({seed, row, kToken}));
    }
    double acceptance(size_t row) override { return keyed({seed, row, kAcceptance}); }
    bool commit(int32_t token) override {
      first = first < 0 ? token : first;
      return true;
    }
    const Distribution &p;
    uint64_t seed;
    int32_t first = -1;
  };
  int64_t zeros = 0;
  constexpr uint64_t kSamples = 50000;
  for (uint64_t seed = 0; seed < kSamples; ++seed) {
    Draft draft;
    for (uint64_t j = 0; j < 2; ++j) {
      draft.tokens.push_back(drawByCumulation(q, keyed({seed, j, kDrafting})));
      draft.drawnFrom.push_back(q);
    }
    const std::vector<Estimates> estimates{{0.8f, draft.tokens[0] == 0 ? 0.9f : 0.0f}};
    Fixed sequence(p, seed);
    EXPECT_TRUE(verify(draft, size_t(schedule(estimates).lengths[0]), sequence).isOk());
    zeros += sequence.first == 0;
  }
  return double(zeros) / double(kSamples);
}

TEST(PrefixScheduler, onlySearchThatLooksAheadBiasesThePapersExample) {
  // Standard deviation of a share of 50,000: 0.002 at 0.7, 0.0016 at 0.85; bounds of 5 of them.
  EXPECT_NEAR(shareOfFirst([](auto &e) { return scheduleEarlyStop(e, kJagged); }), 0.7, 0.01);
  EXPECT_NEAR(shareOfFirst([](auto &e) { return scheduleEarlyStop(e, kJagged, kForecast); }), 0.7, 0.01);
  EXPECT_NEAR(shareOfFirst([](auto &e) { return scheduleBudget(e, 1, kJagged); }), 0.7, 0.01);
  EXPECT_NEAR(shareOfFirst([](auto &e) { return scheduleBudget(e, 2, kJagged); }), 0.7, 0.01);
  EXPECT_NEAR(shareOfFirst([](auto &e) { return scheduleBest(e, kJagged); }), 0.85, 0.008);
}

TEST(PrefixScheduler, takesPrefixesAndBreaksTiesByPosition) {
  const std::vector<Estimates> saturated{{1, 1, 1}, {1, 1}, {0.5f, 1, 1}};
  const StepSeconds seconds(9, 1);
  EXPECT_THAT(scheduleBudget(saturated, 1, seconds).lengths, ElementsAre(1, 0, 0));
  EXPECT_THAT(scheduleBudget(saturated, 3, seconds).lengths, ElementsAre(2, 1, 0));
  EXPECT_THAT(scheduleBudget(saturated, 6, seconds).lengths, ElementsAre(3, 2, 1));
  EXPECT_THAT(scheduleBudget(saturated, 99, seconds).lengths, ElementsAre(3, 2, 3));
  EXPECT_EQ(scheduleBest(saturated, seconds).drafts, 8);
  EXPECT_EQ(scheduleBest(saturated, {1, 1}).drafts, 1) << "no more than the table has room for";
  EXPECT_EQ(scheduleBest(std::vector<Estimates>{{NAN, 1}}, seconds).drafts, 0);
}

TEST(PrefixScheduler, earlyStopFindsTheOptimumOnConvexSecondsAndOnStairsThatWereForecast) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    std::vector<Estimates> sequences(1 + seed % 5);
    for (size_t s = 0; s < sequences.size(); ++s)
      for (uint64_t j = 0; j < 6; ++j)
        sequences[s].push_back(float(0.2 + 0.8 * keyed({seed, s, j})));
    StepSeconds convex{1}, stairs{1};
    double slope = 0.02;
    for (int n = 1; n <= 30; ++n) {
      slope += 0.02 * keyed({seed, 99, uint64_t(n)});
      convex.push_back(convex.back() + slope);
      stairs.push_back(n % 4 == 1 ? stairs.back() + 0.4 : stairs.back());
    }
    EXPECT_EQ(scheduleEarlyStop(sequences, convex).drafts, scheduleBest(sequences, convex).drafts);
    const Schedule best = scheduleBest(sequences, stairs);
    EXPECT_EQ(scheduleEarlyStop(sequences, stairs, inOrder(sequences)).drafts, best.drafts);
    const int32_t caught = scheduleEarlyStop(sequences, stairs).drafts;
    EXPECT_TRUE(caught % 4 == 0 || caught == 6 * int32_t(sequences.size())) << "the end of a stair is free";
  }
}

} // namespace
} // namespace dspark::llm
