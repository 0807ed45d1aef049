#include "planning/Timeline.h"
#include <gtest/gtest.h>
#include <random>

namespace dspark {
namespace {

constexpr int kCpu = 0, kNpu = 1, kGpu = 2;

// Regions behind the caller; each takes `seconds` on every device. Links take 1 per direction.
AssignmentProblem problem(int regions, double seconds, int devices = 2) {
  AssignmentProblem p;
  p.overlaps = true;
  p.devices = devices;
  for (int from = 0; from < devices; ++from)
    for (int to = 0; to < devices; ++to)
      p.transfers.push_back({from == to ? 0 : from == kCpu || to == kCpu ? 1.0 : 2.0, 0});
  p.regions.resize(size_t(regions) + 1);
  p.regions[0].variants = {{kCpu, 0, 0, 0}};
  for (int r = 1; r <= regions; ++r)
    for (int d = 0; d < devices; ++d)
      p.regions[size_t(r)].variants.push_back({d, seconds, 0, 0});
  return p;
}

TEST(Timeline, ChainsTakeTheirSum) {
  AssignmentProblem p = problem(3, 10);
  p.flows = {{0, {1}, 0}, {1, {2}, 0}, {2, {3}, 0}, {3, {0}, 0}};
  Timeline timeline(p);
  EXPECT_DOUBLE_EQ(timeline.end({0, kCpu, kCpu, kCpu}), 30);
  EXPECT_DOUBLE_EQ(timeline.end({0, kCpu, kNpu, kCpu}), 32);
  EXPECT_DOUBLE_EQ(timeline.end({0, kNpu, kNpu, kNpu}), 32);
  p.overlaps = false;
  EXPECT_DOUBLE_EQ(evaluateAssignment(p, {0, kCpu, kNpu, kCpu}).seconds, 32);
}

// Two regions that read the input, and one that reads both: one waits for the other's device.
TEST(Timeline, BranchesRunBesideEachOther) {
  AssignmentProblem p = problem(3, 10);
  p.flows = {{0, {1, 2}, 0}, {1, {3}, 0}, {2, {3}, 0}, {3, {0}, 0}};
  Timeline timeline(p);
  EXPECT_DOUBLE_EQ(timeline.end({0, kNpu, kCpu, kCpu}),
                   1 + 10 + 1 + 10); // the copies and the NPU; the CPU is done
  // In the other order the NPU is only told to start when the CPU has done its part.
  EXPECT_DOUBLE_EQ(timeline.end({0, kCpu, kNpu, kCpu}), 10 + 10 + 1 + 10);
}

TEST(Timeline, CopiesWaitForWhatTheDeviceDoes) {
  AssignmentProblem p = problem(3, 10);
  p.flows = {{0, {1, 2}, 0}, {1, {3}, 0}, {2, {0}, 0}, {3, {0}, 0}};
  // The NPU does 1 and 2; the value of 1 leaves right behind it, and the CPU starts with 3 at 12.
  EXPECT_DOUBLE_EQ(Timeline(p).end({0, kNpu, kNpu, kCpu}), 1 + 10 + 1 + 10 + 1);
  EXPECT_DOUBLE_EQ(Timeline(p).end({0, kNpu, kCpu, kCpu}), 22);
}

TEST(Timeline, FromDeviceToDeviceThroughTheHost) {
  AssignmentProblem p = problem(2, 10, 3);
  p.flows = {{0, {1}, 0}, {1, {2}, 0}, {2, {0}, 0}};
  EXPECT_DOUBLE_EQ(Timeline(p).end({0, kNpu, kGpu}), 1 + 10 + 1 + 1 + 10 + 1);
}

TEST(Timeline, DevicesOfOnePlaceTakeTurns) {
  AssignmentProblem p = problem(2, 10);
  p.transfers.assign(4, {});
  p.places = {0, 0}; // one thread and all threads of a CPU
  p.flows = {{0, {1, 2}, 0}, {1, {0}, 0}, {2, {0}, 0}};
  EXPECT_DOUBLE_EQ(Timeline(p).end({0, 0, 1}), 20);
  p.transfers.assign(4, {7, 0});
  EXPECT_DOUBLE_EQ(Timeline(p).end({0, 0, 1}), 20) << "nothing crosses";
  p.overlaps = false;
  EXPECT_DOUBLE_EQ(evaluateAssignment(p, {0, 0, 1}).seconds, 20);
}

AssignmentProblem randomProblem(std::mt19937 &random, int regions) {
  std::uniform_real_distribution<double> draw(0, 1);
  AssignmentProblem p = problem(regions, 0, 3);
  for (size_t r = 1; r < p.regions.size(); ++r)
    for (RegionVariant &variant : p.regions[r].variants)
      variant = {variant.device, 1 + 9 * draw(random), 0, variant.device == kCpu ? 0 : draw(random)};
  for (int r = 0; r <= regions; ++r) {
    AssignedFlow flow{r, {}, 0};
    for (int consumer = r + 1; consumer <= std::min(regions, r + 4); ++consumer)
      if (consumer == r + 1 || draw(random) < 0.3)
        flow.consumers.push_back(consumer);
    if (r > 0 && flow.consumers.empty())
      flow.consumers.push_back(0);
    p.flows.push_back(std::move(flow));
  }
  p.deviceBytes = {1e9, 0.3 * regions, 0.3 * regions};
  return p;
}

// An end is never later than the sum, nor earlier than what one place has to do.
TEST(Timeline, IsBetweenTheLongestPlaceAndTheSum) {
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    AssignmentProblem p = randomProblem(random, 20);
    std::vector<int> variants = {0};
    double work[3] = {};
    for (size_t r = 1; r < p.regions.size(); ++r) {
      variants.push_back(int(random() % 3));
      work[variants[r]] += p.regions[r].variants[size_t(variants[r])].seconds;
    }
    double end = Timeline(p).end(variants);
    p.overlaps = false;
    EXPECT_LE(end, evaluateAssignment(p, variants).seconds * (1 + 1e-12));
    EXPECT_GE(end, std::max({work[0], work[1], work[2]}));
  }
}

TEST(Timeline, TheSearchEndsNoLaterThanItsStartAndWithinTheBounds) {
  std::mt19937 random(2);
  for (int i = 0; i < 20; ++i) {
    AssignmentProblem p = randomProblem(random, i < 10 ? 6 : 40);
    AssignmentProblem sum = p;
    sum.overlaps = false;
    double start = evaluateAssignment(p, solveAssignment(sum).variants).seconds;
    AssignmentSolution found = solveAssignment(p);
    EXPECT_TRUE(found.isFeasible);
    EXPECT_LE(found.seconds, start * (1 + 1e-9));
    EXPECT_LE(found.lowerBound, found.seconds);
    EXPECT_EQ(found.isOptimal, i < 10);
    EXPECT_DOUBLE_EQ(evaluateAssignment(p, found.variants).seconds, found.seconds);
  }
}

// The least sum is that of the CPU alone; the earliest end has the slower device do half of it.
TEST(Timeline, ASlowerDeviceHelps) {
  AssignmentProblem p = problem(8, 10);
  for (int r = 1; r <= 8; ++r) {
    p.regions[size_t(r)].variants[kNpu].seconds = 11;
    p.flows.push_back({r, {0}, 0});
  }
  EXPECT_EQ(solveAssignment(p).seconds, 44 + 4) << "four regions and their results";
  p.overlaps = false;
  EXPECT_EQ(solveAssignment(p).seconds, 80);
}

} // namespace
} // namespace dspark
