// The adapter on simulated machines: true times that change by script, noise, faults. A chain of six regions;
// device 0 is one thread, 1 two threads, 2 an NPU that lacks one of the regions.
#include "runtime/adapt/Adapter.h"
#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <random>

namespace dspark {
namespace {

constexpr size_t kRegions = 6;
constexpr double kOneThread[kRegions] = {1.0, 2.0, 0.5, 3.0, 1.5, 1.0}; // ms

struct State {
  double slowdown[3] = {1, 1, 1};
  bool npuFails = false;
  double npuBytes = 100;
  int64_t bucket = 0; // in bucket 1 inputs are small: little work, and transfers as dear as before
};

class Simulation {
public:
  explicit Simulation(unsigned seed, double noise, double predictionError = 0.15) : rng(seed), noise(noise) {
    std::uniform_real_distribution<double> draw(-1, 1);
    for (size_t r = 0; r < kRegions; ++r) {
      AssignedRegion &region = predicted.regions.emplace_back();
      for (int d = 0; d < (r == 2 ? 2 : 3); ++d)
        region.variants.push_back({d, base(r, d) * (1 + predictionError * draw(rng)), 0, d == 2 ? 10.0 : 0});
      if (r > 0)
        predicted.flows.push_back({int(r) - 1, {int(r)}, 1});
    }
    predicted.devices = 3;
    TransferCost none, link{0.05, 0};
    predicted.transfers = {none, none, link, none, none, link, link, link, none};
    predicted.deviceBytes = {1e9, 1e9, 100};
  }

  static double base(size_t r, int d) { return kOneThread[r] * (d == 0 ? 1 : d == 1 ? 0.55 : 0.15); }

  double seconds(size_t r, int d, const State &state) const {
    return base(r, d) * state.slowdown[d] * (state.bucket == 1 ? 0.02 : 1) +
           (d == 1 && state.bucket == 1 ? 0.05 : 0);
  }
  /// Predictions for the small inputs, as wrong as those for the usual ones.
  AssignmentProblem predictedSmall() const {
    AssignmentProblem p = predicted;
    State small;
    small.bucket = 1;
    for (size_t r = 0; r < kRegions; ++r)
      for (RegionVariant &v : p.regions[r].variants)
        v.seconds *= seconds(r, v.device, small) / base(r, v.device);
    return p;
  }
  AssignmentProblem truth(const State &state) const {
    AssignmentProblem p = predicted;
    p.deviceBytes[2] = state.npuFails ? 0 : state.npuBytes;
    for (size_t r = 0; r < kRegions; ++r)
      for (RegionVariant &v : p.regions[r].variants)
        v.seconds = seconds(r, v.device, state);
    return p;
  }
  double oracle(const State &state) const { return solveAssignment(truth(state)).seconds; }

  /// What a plan takes without noise. Regions that do not get onto the NPU run on one thread.
  double cost(std::vector<int> variants, const State &state) const {
    AssignmentProblem p = truth(state);
    double used = 0;
    for (size_t r = 0; r < kRegions; ++r)
      if (p.regions[r].variants[size_t(variants[r])].device == 2 && (used += 10) > p.deviceBytes[2])
        variants[r] = 0;
    return evaluateAssignment(p, variants).seconds;
  }

  /// One run with the adapter; returns its true cost. A fault costs the failed region's fallback.
  double step(Adapter &adapter, const State &state) {
    if (lastBytes != state.npuBytes)
      adapter.setDeviceBytes({1e9, 1e9, lastBytes = state.npuBytes});
    double extra = 0;
    if (std::optional<int> resource = adapter.canary()) {
      bool isDown = *resource == 2 && state.npuFails;
      adapter.reportCanary(*resource, isDown ? INFINITY : state.slowdown[*resource] * disturbed());
      extra = 0.005 * state.slowdown[*resource]; // ms
    }
    std::vector<int> variants = adapter.next(state.bucket);
    for (size_t r = 0; r < kRegions; ++r)
      if (state.npuFails && variants[r] == 2) {
        EXPECT_TRUE(adapter.fault(r)); // the request goes on, from this region
        variants = adapter.next(state.bucket);
        extra += 0.1;
        r = size_t(-1);
      }
    std::vector<double> times;
    for (size_t r = 0; r < kRegions; ++r)
      times.push_back(seconds(r, variants[r], state) * disturbed());
    if (adapter.measures())
      adapter.report(times);
    return evaluateAssignment(truth(state), variants).seconds + extra;
  }
  double disturbed() { return 1 + noise * std::uniform_real_distribution<double>(-1, 1)(rng); }

  AssignmentProblem predicted;

private:
  std::mt19937 rng;
  double noise, lastBytes = 100;
};

/// Runs until the cost has stayed within 10 % of the best plan's for ten runs; how many runs came before.
int runsUntilGood(Simulation &simulation, Adapter &adapter, const State &state) {
  double best = simulation.oracle(state);
  int good = 0, runs = 0;
  for (; good < 10 && runs < 500; ++runs) // one explored run does not count
    good = simulation.step(adapter, state) <= best * 1.1 ? good + 1 : 0;
  return runs - good;
}

State slowNpu() {
  State s;
  s.slowdown[2] = 10;
  return s;
}
State busyCore() {
  State s;
  s.slowdown[1] = 1.9;
  return s;
}
State deadNpu() {
  State s;
  s.npuFails = true;
  return s;
}
State smallNpu() {
  State s;
  s.npuBytes = 15;
  return s;
}
State smallInputs() {
  State s;
  s.bucket = 1;
  return s;
}

struct Change {
  const char *name;
  State state;
};

class Adaptation : public testing::TestWithParam<Change> {};

TEST_P(Adaptation, IsNearTheBestPlanWithinTwentyRunsAndReturns) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    Simulation simulation(seed, 0.05);
    Adapter adapter(simulation.predicted);
    adapter.seed(1, simulation.predictedSmall());
    State usual;
    for (int i = 0; i < 100; ++i)
      simulation.step(adapter, usual);
    EXPECT_LE(runsUntilGood(simulation, adapter, GetParam().state), 20) << "seed " << seed;
    for (int i = 0; i < 100; ++i)
      simulation.step(adapter, GetParam().state);
    EXPECT_LE(runsUntilGood(simulation, adapter, usual), 20) << "back again, seed " << seed;
  }
}

// A busy core only matters where the NPU does not do the work: there both change.
State busyCoreSlowNpu() {
  State s = slowNpu();
  s.slowdown[1] = 1.9;
  return s;
}

INSTANTIATE_TEST_SUITE_P(Changes, Adaptation,
                         testing::Values(Change{"SlowNpu", slowNpu()}, Change{"BusyCore", busyCore()},
                                         Change{"BusyCoreSlowNpu", busyCoreSlowNpu()},
                                         Change{"DeadNpu", deadNpu()}, Change{"SmallNpu", smallNpu()},
                                         Change{"SmallInputs", smallInputs()}),
                         [](auto &info) { return info.param.name; });

TEST(Adapter, NoiseMovesNothing) {
  for (unsigned seed = 1; seed <= 30; ++seed) {
    Simulation simulation(seed, 0.30);
    Adapter adapter(simulation.predicted);
    adapter.seed(1, simulation.predictedSmall());
    for (int i = 0; i < 1000; ++i)
      simulation.step(adapter, State());
    EXPECT_LE(adapter.switches(), 1u) << "seed " << seed;
  }
}

TEST(Adapter, ExploresAtMostOneRunInAHundred) {
  Simulation simulation(3, 0.05);
  Adapter adapter(simulation.predicted);
  int explored = 0;
  std::vector<int> usual = adapter.next(0);
  adapter.report(std::vector<double>(kRegions, 1));
  for (int i = 0; i < 2000; ++i) {
    std::vector<int> planned = adapter.next(0);
    std::vector<double> times;
    for (size_t r = 0; r < kRegions; ++r)
      times.push_back(simulation.seconds(r, planned[r], State()));
    adapter.report(times);
    explored += planned != usual;
    if (adapter.switches() > 0)
      break;
  }
  EXPECT_LE(explored, 20);
}

// A prediction that favours the wrong variant by a factor of two is found out.
TEST(Adapter, FindsOutWrongPredictions) {
  AssignmentProblem p;
  p.devices = 2;
  p.transfers.resize(4);
  p.regions = {{{{0, 1.0, 0, 0}, {1, 1.2, 0, 0}}}};
  Adapter adapter(p);
  const double truth[] = {1.0, 0.5};
  for (int i = 0; i < 1000; ++i) {
    int variant = adapter.next(0)[0];
    adapter.report({truth[variant]});
  }
  EXPECT_EQ(adapter.next(0)[0], 1);
  ASSERT_EQ(adapter.switches(), 1u);
  EXPECT_EQ(adapter.events()[0].reason, "faster");
  EXPECT_NEAR(adapter.events()[0].fromSeconds, 1.0, 1e-9);
  EXPECT_NEAR(adapter.events()[0].toSeconds, 0.5, 1e-9);
}

// Two ways of one region; the second is predicted to be a little slower. Runs until it is taken, `most` if
// never.
int runsUntilSecond(double first, double second, int most) {
  AssignmentProblem p;
  p.devices = 2;
  p.transfers.resize(4);
  p.regions = {{{{0, 1.0, 0, 0}, {1, 1.02, 0, 0}}}};
  Adapter adapter(p);
  for (int i = 0; i < most; ++i) {
    int variant = adapter.next(0)[0];
    adapter.report({variant == 0 ? first : second});
    if (adapter.switches() > 0)
      return i;
  }
  return most;
}

// It is known after three runs that explore, one in a hundred.
TEST(Adapter, SmallGainsAreTakenWhenTheyHaveAddedUp) {
  int large = runsUntilSecond(1, 0.8, 1000), small = runsUntilSecond(1, 0.94, 1000);
  EXPECT_EQ(large, 300 + 2); // four runs with 10 % or more, the one that explored among them
  EXPECT_EQ(small, 300 + 5); // seven with 6 %
  EXPECT_EQ(runsUntilSecond(1, 0.97, 3000), 3000);
}

// What was measured long ago is measured again.
TEST(Adapter, FindsOutThatAnAlternativeHasBecomeFaster) {
  AssignmentProblem p;
  p.devices = 2;
  p.transfers.resize(4);
  p.regions = {{{{0, 1.0, 0, 0}, {1, 1.2, 0, 0}}}};
  Adapter adapter(p);
  for (int i = 0; i < 2000; ++i) {
    int variant = adapter.next(0)[0];
    adapter.report({variant == 0 ? 1.0 : i < 1000 ? 1.2 : 0.5});
    ASSERT_TRUE(i >= 1000 || adapter.switches() == 0);
  }
  EXPECT_EQ(adapter.switches(), 1u);
  EXPECT_EQ(adapter.next(0)[0], 1);
}

// Two resources that were marked in the same run: each is asked for, and the one that is as it was comes
// back.
TEST(Adapter, CanariesTakeTurns) {
  AssignmentProblem p;
  p.devices = 3;
  p.transfers.resize(9);
  p.regions = {{{{0, 9.0, 0, 0}, {1, 1.0, 0, 0}}}, {{{0, 9.0, 0, 0}, {2, 1.0, 0, 0}}}};
  Adapter adapter(p);
  auto run = [&](double seconds) {
    if (std::optional<int> resource = adapter.canary())
      adapter.reportCanary(*resource, *resource == 1 ? 10 : 1);
    std::vector<double> times;
    for (int variant : adapter.next(0))
      times.push_back(variant == 0 ? 9.0 : seconds);
    adapter.report(times);
  };
  for (int i = 0; i < 50; ++i)
    run(1.0);
  for (int i = 0; i < 5; ++i)
    run(20.0);
  EXPECT_EQ(adapter.next(0), (std::vector<int>{0, 0}));
  for (int i = 0; i < 20; ++i)
    run(1.0);
  EXPECT_EQ(adapter.next(0), (std::vector<int>{0, 1}));
}

// One run in four while nothing is new; all of them when one looks like a change.
TEST(Adapter, MeasuresSeldomWhileNothingIsNew) {
  AssignmentProblem p;
  p.devices = 2;
  p.transfers.resize(4);
  p.regions = {{{{0, 1.0, 0, 0}, {1, 5.0, 0, 0}}}};
  Adapter adapter(p);
  auto measured = [&](int runs, double seconds) {
    int count = 0;
    for (int i = 0; i < runs; ++i) {
      adapter.next(0);
      count += adapter.measures();
      if (adapter.measures())
        adapter.report({seconds});
    }
    return count;
  };
  EXPECT_EQ(measured(int(Estimate::kWindow), 1.0), int(Estimate::kWindow));
  EXPECT_EQ(measured(400, 1.0), 100);
  EXPECT_EQ(measured(20, 3.0), 17) << "from the first measured one on that is slow";
  EXPECT_EQ(adapter.canary(), 0) << "a drift was seen";
}

TEST(Estimate, DoubtIsWhatMoreMeasurementsMayTakeAway) {
  Estimate estimate(5);
  for (double seconds : {1.3, 1.0})
    estimate.add(seconds);
  EXPECT_EQ(estimate.doubt(), 0) << "the prediction still counts";
  for (double seconds : {1.1, 1.2})
    estimate.add(seconds);
  EXPECT_DOUBLE_EQ(estimate.measured(), 1.0);
  EXPECT_DOUBLE_EQ(estimate.doubt(), 0.3 / 3);
  for (size_t i = 0; i < Estimate::kWindow; ++i)
    estimate.add(1.1);
  EXPECT_DOUBLE_EQ(estimate.measured(), 1.1) << "what has left the window is forgotten";
  EXPECT_EQ(estimate.doubt(), 0);
}

TEST(Adapter, WithoutAnyWayAFaultIsTold) {
  AssignmentProblem p;
  p.regions = {{{{0, 1, 0, 0}}}};
  Adapter adapter(p);
  adapter.next(0);
  EXPECT_FALSE(adapter.fault(0));
}

// Each change twice, in random order and for random times, the usual state between them.
TEST(Adapter, RegretOverAMixedTraceIsSmall) {
  const State states[] = {State(),    slowNpu(),     busyCore(),       deadNpu(),
                          smallNpu(), smallInputs(), busyCoreSlowNpu()};
  double worstRegret = 0, leastGain = 1e9;
  for (unsigned seed = 1; seed <= 10; ++seed) {
    std::mt19937 rng(seed);
    std::vector<size_t> trace; // indices into `states`
    std::vector<size_t> changes = {1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6};
    std::shuffle(changes.begin(), changes.end(), rng);
    for (size_t change : changes) {
      trace.insert(trace.end(), 100 + rng() % 100, 0);
      trace.insert(trace.end(), 100 + rng() % 100, change);
    }
    Simulation simulation(seed, 0.05);
    Adapter adapter(simulation.predicted);
    adapter.seed(1, simulation.predictedSmall());
    double adapted = 0, oracle = 0;
    std::vector<double> statics;
    for (const State &candidate : states) {
      std::vector<int> plan = solveAssignment(simulation.truth(candidate)).variants;
      double sum = 0;
      std::vector<double> costs;
      for (const State &state : states)
        costs.push_back(simulation.cost(plan, state));
      for (size_t state : trace)
        sum += costs[state];
      statics.push_back(sum);
    }
    std::vector<double> best;
    for (const State &state : states)
      best.push_back(simulation.oracle(state));
    for (size_t state : trace) {
      adapted += simulation.step(adapter, states[state]);
      oracle += best[state];
    }
    worstRegret = std::max(worstRegret, adapted / oracle - 1);
    leastGain = std::min(leastGain, *std::min_element(statics.begin(), statics.end()) / adapted);
  }
  std::printf("regret at most %.1f %%, best static plan at least %.2f times slower\n", worstRegret * 100,
              leastGain);
  EXPECT_LE(worstRegret, 0.10);
  EXPECT_GE(leastGain, 1.5);
}

} // namespace
} // namespace dspark
