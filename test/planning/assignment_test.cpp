#include "planning/Assignment.h"
#include <cmath>
#include <ctime>
#include <gtest/gtest.h>
#include <random>

namespace dspark {
namespace {

double draw(std::mt19937 &rng, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(rng);
}

// Regions in topological order; each reads one to three of the `reach` before it. Variants with less error or
// on a slower device take longer, more or less.
AssignmentProblem randomProblem(std::mt19937 &rng, int regions, int variants, int devices, int reach) {
  AssignmentProblem p;
  p.devices = devices;
  for (int d = 0; d < devices * devices; ++d)
    p.transfers.push_back({draw(rng, 0, 2), draw(rng, 0, 0.02)});
  double leastError = 0, mostError = 0;
  std::vector<double> bytes(size_t(devices), 0.0);
  for (int r = 0; r < regions; ++r) {
    AssignedRegion &region = p.regions.emplace_back();
    double least = 1e9, most = 0;
    int count = 1 + int(rng() % unsigned(variants));
    for (int v = 0; v < count; ++v) {
      double error = rng() % 4 == 0 ? 0 : draw(rng, 0, 1);
      region.variants.push_back(
          {int(rng() % unsigned(devices)), draw(rng, 1, 10) * (1.5 - error), error, draw(rng, 0, 10)});
      least = std::min(least, error);
      most = std::max(most, error);
      bytes[size_t(region.variants.back().device)] += region.variants.back().bytes;
    }
    leastError += least;
    mostError += most;
  }
  std::vector<AssignedFlow> flows;
  flows.resize(size_t(regions));
  for (int r = 1; r < regions; ++r)
    for (int k = 0, count = 1 + int(rng() % 2); k < count; ++k) {
      int from = std::max(0, r - 1 - int(rng() % unsigned(reach)));
      flows[size_t(from)].consumers.push_back(r);
      AssignedEdge edge{from, r, {}};
      for (size_t i = 0; i < p.regions[size_t(from)].variants.size() * p.regions[size_t(r)].variants.size();
           ++i)
        edge.seconds.push_back(rng() % 2 ? 0 : draw(rng, 0, 2));
      p.edges.push_back(std::move(edge));
    }
  for (int r = 0; r < regions; ++r)
    if (!flows[size_t(r)].consumers.empty()) {
      flows[size_t(r)].producer = r;
      flows[size_t(r)].bytes = draw(rng, 1, 100);
      p.flows.push_back(flows[size_t(r)]);
    }
  p.errorBudget = leastError + draw(rng, 0, 0.7) * (mostError - leastError);
  if (devices > 1 && rng() % 2)
    for (double all : bytes)
      p.deviceBytes.push_back(all * draw(rng, 0.3, 1));
  return p;
}

// Every assignment, cut off only where the regions alone already take longer than the best one found.
struct BruteForce {
  explicit BruteForce(const AssignmentProblem &p) : p(p), variants(p.regions.size()) { from(0, 0, 0); }
  void from(size_t r, double seconds, double error) {
    if (seconds >= best || error > p.errorBudget * (1 + 1e-12))
      return;
    if (r == p.regions.size()) {
      AssignmentSolution found = evaluateAssignment(p, variants);
      if (found.isFeasible)
        best = std::min(best, found.seconds);
      return;
    }
    for (size_t v = 0; v < p.regions[r].variants.size(); ++v) {
      variants[r] = int(v);
      const RegionVariant &variant = p.regions[r].variants[v];
      from(r + 1, seconds + variant.seconds, error + variant.error);
    }
  }
  const AssignmentProblem &p;
  std::vector<int> variants;
  double best = 1e300;
};

TEST(Assignment, EqualsBruteForceOnRandomGraphs) {
  std::mt19937 rng(5);
  int infeasible = 0;
  for (int i = 0; i < 500; ++i) {
    AssignmentProblem p = randomProblem(rng, 1 + int(rng() % 12), 4, 1 + int(rng() % 3), 4);
    BruteForce brute(p);
    AssignmentSolution found = solveAssignment(p);
    EXPECT_EQ(found.isFeasible, brute.best < 1e300) << "graph " << i;
    if (!found.isFeasible) {
      ++infeasible;
      continue;
    }
    EXPECT_TRUE(found.isOptimal) << "graph " << i;
    EXPECT_NEAR(found.seconds, brute.best, 1e-9 * brute.best) << "graph " << i;
    EXPECT_NEAR(evaluateAssignment(p, found.variants).seconds, found.seconds, 1e-9);
  }
  EXPECT_LT(infeasible, 250); // the comparison means something
}

TEST(Assignment, LargeGraphsEndNearTheirLowerBound) {
  std::mt19937 rng(6);
  for (int i = 0; i < 5; ++i) {
    AssignmentProblem p = randomProblem(rng, 1000, 4, 1 + i % 3, 3);
    for (double &bytes : p.deviceBytes) // limits that bind, but leave room
      bytes *= 1.2;
    std::clock_t start = std::clock(); // of this process: others do not count
    AssignmentSolution found = solveAssignment(p);
    double taken = double(std::clock() - start) / CLOCKS_PER_SEC;
    ASSERT_TRUE(found.isFeasible);
    EXPECT_LE(found.seconds, found.lowerBound * 1.01) << "graph " << i;
    EXPECT_LE(found.lowerBound, found.seconds * (1 + 1e-12));
    std::printf("1000 regions, %d devices: %.3f s above the bound %.3f (%.3f %%), %.2f s\n", p.devices,
                found.seconds, found.lowerBound, (found.seconds / found.lowerBound - 1) * 100, taken);
  }
}

TEST(Assignment, AValueIsTransferredOncePerDevice) {
  AssignmentProblem p;
  p.devices = 2;
  p.transfers = {{0, 0}, {3, 0}, {3, 0}, {0, 0}};
  p.regions = {{{{0, 1, 0, 0}}}, {{{1, 1, 0, 0}}}, {{{1, 1, 0, 0}}}, {{{0, 1, 0, 0}}}};
  p.flows = {{0, {1, 2, 3}, 1}};
  EXPECT_DOUBLE_EQ(evaluateAssignment(p, {0, 0, 0, 0}).seconds, 4 + 3);
}

// One region alone is faster elsewhere, but not by as much as going there and back costs; all three together
// are.
TEST(Assignment, TransfersDecideForWholeChains) {
  AssignmentProblem p;
  p.devices = 2;
  p.transfers = {{0, 0}, {2, 0}, {2, 0}, {0, 0}};
  AssignedRegion fixed{{{0, 1, 0, 0}}}, either{{{0, 3, 0, 0}, {1, 1.5, 0, 0}}};
  p.regions = {fixed, either, fixed};
  p.flows = {{0, {1}, 1}, {1, {2}, 1}};
  EXPECT_EQ(solveAssignment(p).variants, (std::vector<int>{0, 0, 0}));
  p.regions = {fixed, either, either, either, fixed};
  p.flows = {{0, {1}, 1}, {1, {2}, 1}, {2, {3}, 1}, {3, {4}, 1}};
  EXPECT_EQ(solveAssignment(p).variants, (std::vector<int>{0, 1, 1, 1, 0}));
  p.deviceBytes = {1e9, 1};
  for (size_t r : {1, 2, 3})
    p.regions[r].variants[1].bytes = 1;
  EXPECT_EQ(solveAssignment(p).variants, (std::vector<int>{0, 0, 0, 0, 0})); // the device is too small
}

TEST(Assignment, AnUnmeetableBudgetIsTold) {
  AssignmentProblem p;
  p.regions = {{{{0, 1, 0.5, 0}, {0, 2, 0.25, 0}}}, {{{0, 1, 0.25, 0}}}};
  p.errorBudget = 0.4;
  AssignmentSolution found = solveAssignment(p);
  EXPECT_FALSE(found.isFeasible);
  EXPECT_EQ(found.variants, (std::vector<int>{1, 0})); // the least error there is
  EXPECT_DOUBLE_EQ(found.error, 0.5);
  p.errorBudget = 0.5;
  EXPECT_TRUE(solveAssignment(p).isFeasible);
  EXPECT_TRUE(solveAssignment(AssignmentProblem()).isFeasible); // no regions
}

} // namespace
} // namespace dspark
