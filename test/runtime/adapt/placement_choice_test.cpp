// A session that adapts, on a stub device, in virtual time: nothing here depends on how fast or busy the
// machine is.
#include "runtime/executor/PlacementProblem.h"
#include "runtime/executor/Session.h"
#include "test/runtime/PlanBuilder.h"
#include <cmath>
#include <fstream>
#include <gmock/gmock.h>
#include <iomanip>
#include <random>

namespace dspark::test {
namespace {

using testing::HasSubstr;

constexpr int kSteps = 5, kWidth = 48;
constexpr double kLatency = 1e-7, kRate = 5e10; // of the link
constexpr int kNever = -1;

// y = x w0 w1 ... : a chain of products whose weights lie on the device that runs them.
class PlacementAdaptation : public testing::Test {
protected:
  void SetUp() override {
    PlanBuilder b(folder.file("p.dsp"));
    int value = b.input("x", DType::F32, {b.symbol("batch"), b.number(kWidth)});
    std::mt19937 random(1);
    for (int i = 0; i < kSteps; ++i) {
      std::vector<float> w(kWidth * kWidth);
      for (float &v : w)
        v = float(int(random() % 200) - 100) * 1e-3f;
      value = b.kernel("matmul", {value, b.constant<float>(DType::F32, {kWidth, kWidth}, w)});
    }
    b.output(value, "y");
    b.device("npu");
    for (int i = 0; i < kSteps; ++i)
      for (auto &variant : b.region({i}, {0, 1}, 1).variants)
        variant->bytes = variant->device == 1 ? kWidth * kWidth * 4 : 0;
    b.finish();
  }

  std::unique_ptr<Session> session(const std::string &more, bool adapts = true,
                                   const std::string &learned = "", int threads = 1) {
    std::ofstream(folder.file("npu.json"))
        << R"({"link_latency_us": 0.1, "link_in_gbytes_per_s": 50, "link_out_gbytes_per_s": 50,)"
        << R"("ops": [{"op": "matmul", "launch_us": )" << std::setprecision(17) << npu * 1e6 << "}]" << more
        << "}";
    SessionOptions options;
    options.threads = threads;
    options.isa = Isa::Baseline; // the stub's, so that results are the same to the bit
    options.adapt = adapts;
    options.virtualTime = true;
    options.learned = learned;
    options.devices.push_back({"npu", STUB, folder.file("npu.json")});
    auto program = Program::create(*PlanFile::open(folder.file("p.dsp")));
    auto made = Session::create(*program, options);
    EXPECT_TRUE(made.isOk()) << made.status().message();
    return std::move(*made);
  }

  // Whether the answer was right.
  bool run(Session &session, int64_t batch = 64) {
    std::vector<float> x(size_t(batch * kWidth));
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = float(i % 13) * 0.1f - 0.6f;
    int64_t dims[] = {batch, kWidth};
    BorrowedTensor input{x.data(), DType::F32, 2, dims, nullptr};
    Status status = session.run(std::span<const BorrowedTensor>(&input, 1));
    EXPECT_TRUE(status.isOk()) << status.message();
    if (!status.isOk())
      return false;
    auto *y = session.output(0).as<float>();
    std::vector<float> found(y, y + x.size());
    std::vector<float> &expected = answers[batch];
    if (expected.empty())
      expected = found;
    return found == expected;
  }

  // Seconds of a run by the placement it had, in the true state: `slow` of the NPU and of the CPU.
  double cost(const std::vector<bool> &onNpu, int64_t batch, const std::vector<double> &cpu, double slowNpu,
              double slowCpu) const {
    double bytes = double(batch * kWidth * 4), crossing = kLatency + bytes / kRate, sum = 0;
    bool before = false;
    for (size_t i = 0; i < onNpu.size(); ++i) {
      sum += onNpu[i] ? npu * slowNpu : cpu[i] * slowCpu;
      sum += onNpu[i] != before ? crossing : 0;
      before = onNpu[i];
    }
    return sum + (before ? crossing : 0);
  }
  double best(int64_t batch, const std::vector<double> &cpu, double slowNpu, double slowCpu,
              int mostOnNpu) const {
    double least = INFINITY;
    for (int code = 0; code < 1 << kSteps; ++code) {
      std::vector<bool> onNpu;
      for (int i = 0; i < kSteps; ++i)
        onNpu.push_back(code >> i & 1);
      if (std::count(onNpu.begin(), onNpu.end(), true) <= mostOnNpu)
        least = std::min(least, cost(onNpu, batch, cpu, slowNpu, slowCpu));
    }
    return least;
  }
  // Regions, of one step each, that the last run had on the NPU.
  static std::vector<bool> placementOf(const Session &session) {
    std::vector<bool> onNpu(kSteps);
    for (size_t i = 0; i < session.placement().size(); ++i)
      onNpu[i] = session.placement()[i] != 0;
    return onNpu;
  }
  // What the CPU takes, from a session whose device has no memory.
  std::vector<double> cpuSeconds(int64_t batch) {
    npu = 1;
    auto made = session(R"(, "memory_bytes": 64)");
    EXPECT_TRUE(run(*made, batch));
    EXPECT_TRUE(run(*made, batch));
    return {made->regionSeconds().begin(), made->regionSeconds().end()};
  }
  // Runs until ten in a row are within 10 % of the best; how many came before.
  int runsUntilGood(Session &session, int64_t batch, const std::vector<double> &cpu, double slowNpu,
                    double slowCpu, int mostOnNpu = kSteps) {
    double least = best(batch, cpu, slowNpu, slowCpu, mostOnNpu);
    int good = 0, runs = 0;
    for (; good < 10 && runs < 300; ++runs) {
      EXPECT_TRUE(run(session, batch));
      double taken = cost(placementOf(session), batch, cpu, slowNpu, slowCpu);
      good = taken <= least * 1.1 ? good + 1 : 0;
    }
    return good < 10 ? kNever : runs - good;
  }

  double npu = 1; // seconds of a product there
  TemporaryFolder folder;
  std::map<int64_t, std::vector<float>> answers;
};

TEST_F(PlacementAdaptation, SlowDownIsLeftAndComesBack) {
  std::vector<double> cpu = cpuSeconds(64);
  npu = cpu[0] / 5;
  auto made = session(R"(, "faults": [{"kind": "slow", "factor": 10, "from": 600, "until": 800}])");
  for (int i = 0; i < 99; ++i)
    ASSERT_TRUE(run(*made));
  EXPECT_EQ(runsUntilGood(*made, 64, cpu, 1, 1), 0) << "before the change";
  // Launches 600 to 800 are slow; canaries count them, too, and so it ends.
  for (int i = 0; i < 50 && made->regionSeconds()[2] < 5 * npu; ++i)
    ASSERT_TRUE(run(*made));
  ASSERT_GE(made->regionSeconds()[2], 5 * npu);
  int runs = 0;
  for (; runs < 60 && placementOf(*made)[2]; ++runs)
    ASSERT_TRUE(run(*made));
  EXPECT_LE(runs, 20) << "until the CPU does it";
  for (runs = 0; runs < 2000 && !placementOf(*made)[2]; ++runs)
    ASSERT_TRUE(run(*made));
  EXPECT_LT(runs, 2000) << "until the NPU does it again";
  EXPECT_LE(runsUntilGood(*made, 64, cpu, 1, 1), 20);
}

// The CPU takes longer, as when somebody else uses it: more goes to the NPU, and returns.
TEST_F(PlacementAdaptation, BusyCpuIsLeft) {
  std::vector<double> cpu = cpuSeconds(4);
  npu = cpu[0] * 3;
  auto made = session("");
  for (int i = 0; i < 100; ++i)
    ASSERT_TRUE(run(*made, 4));
  for (double slow : {8.0, 1.0, 8.0}) {
    made->setVirtualSlowdown(slow, slow);
    int runs = runsUntilGood(*made, 4, cpu, 1, slow);
    EXPECT_NE(runs, kNever) << slow;
    EXPECT_LE(runs, 20) << slow;
  }
}

TEST_F(PlacementAdaptation, FaultsAtAnyStepLoseNothing) {
  std::mt19937 random(7);
  std::vector<double> cpu = cpuSeconds(64);
  npu = cpu[0] / 5;
  for (int trial = 0; trial < 4; ++trial) {
    std::string at = std::to_string(100 + random() % 100);
    auto made = session(R"(, "faults": [{"kind": "fault", "from": )" + at + R"(, "until": )" +
                        std::to_string(std::stoi(at) + 3) + "}]");
    for (int i = 0; i < 60; ++i)
      ASSERT_TRUE(run(*made)) << "launch " << at;
    std::vector<AdaptEvent> events = made->takeAdaptEvents();
    ASSERT_FALSE(events.empty());
    EXPECT_EQ(events[0].reason, "fault");
    EXPECT_THAT(events[0].detail, HasSubstr("device 'npu'"));
    EXPECT_NE(runsUntilGood(*made, 64, cpu, 1, 1), kNever) << "back on the NPU, launch " << at;
  }
}

TEST_F(PlacementAdaptation, LessMemoryKeepsWhatFits) {
  std::vector<double> cpu = cpuSeconds(64);
  npu = cpu[0] / 5;
  // Two weights, and the tensors between them, but no canary beside.
  std::string bytes = std::to_string(2 * kWidth * kWidth * 4 + 4 * 64 * kWidth * 4 + kWidth * kWidth * 4);
  auto made =
      session(R"(, "faults": [{"kind": "memory", "from": 300, "until": 100000, "bytes": )" + bytes + "}]");
  for (int i = 0; i < 100; ++i)
    ASSERT_TRUE(run(*made));
  std::vector<bool> onNpu = placementOf(*made);
  EXPECT_LT(std::count(onNpu.begin(), onNpu.end(), true), kSteps);
  std::vector<AdaptEvent> events = made->takeAdaptEvents();
  EXPECT_TRUE(
      std::any_of(events.begin(), events.end(), [](auto &event) { return event.reason == "memory"; }));
}

// Few rows are the CPU's, many the NPU's, each from the first run on.
TEST_F(PlacementAdaptation, ShapesAreChosenForOneByOne) {
  std::vector<double> small = cpuSeconds(1), large = cpuSeconds(64);
  npu = std::sqrt(small[0] * large[0]);
  auto made = session("");
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(run(*made, 1));
    EXPECT_LE(cost(placementOf(*made), 1, small, 1, 1), best(1, small, 1, 1, kSteps) * 1.1) << i;
    ASSERT_TRUE(run(*made, 64));
    EXPECT_LE(cost(placementOf(*made), 64, large, 1, 1), best(64, large, 1, 1, kSteps) * 1.1) << i;
  }
}

// Sizes up to the next power of two are alike: what was measured for one is known for all.
TEST_F(PlacementAdaptation, SizesOfOneRangeLearnTogether) {
  std::vector<double> cpu = cpuSeconds(60);
  npu = cpu[0] * 3;
  auto made = session("");
  made->setVirtualSlowdown(8, 8); // than any prediction
  ASSERT_TRUE(run(*made, 60));
  EXPECT_FALSE(placementOf(*made)[2]);
  EXPECT_LE(runsUntilGood(*made, 60, cpu, 1, 8), 300);
  ASSERT_TRUE(placementOf(*made)[2]);
  ASSERT_TRUE(run(*made, 40));
  EXPECT_TRUE(placementOf(*made)[2]) << "from its first run on";
  ASSERT_TRUE(run(*made, 3));
  EXPECT_FALSE(placementOf(*made)[2]) << "of another range";
}

// Somebody takes a core: one thread is as fast as before, all wait for the slow one.
TEST_F(PlacementAdaptation, ThreadsAreChosenByRegion) {
  npu = 1;
  auto made = session(R"(, "memory_bytes": 64)", true, "", 2);
  auto isSerial = [&] {
    std::span<const char> regions = made->serialRegions();
    return regions.size() == kSteps && std::count(regions.begin(), regions.end(), 1) == kSteps;
  };
  auto runsUntil = [&](bool wanted) {
    int runs = 0;
    for (; runs < 200 && isSerial() != wanted; ++runs)
      EXPECT_TRUE(run(*made, 2048));
    return runs;
  };
  for (int i = 0; i < 30; ++i)
    ASSERT_TRUE(run(*made, 2048));
  EXPECT_FALSE(isSerial());
  made->setVirtualSlowdown(1, 3);
  EXPECT_LE(runsUntil(true), 20);
  for (int i = 0; i < 20; ++i) // canaries confirm it
    ASSERT_TRUE(run(*made, 2048));
  made->setVirtualSlowdown(1, 1);
  EXPECT_LE(runsUntil(false), 20);
}

TEST_F(PlacementAdaptation, NoiseMovesNothing) {
  npu = cpuSeconds(16)[0] / 3;
  for (int seed : {1, 2, 3}) {
    auto made = session(R"(, "noise": 0.3, "seed": )" + std::to_string(seed));
    for (int i = 0; i < 1000; ++i)
      ASSERT_TRUE(run(*made, 16));
    EXPECT_LE(made->takeAdaptEvents().size(), 1u) << "seed " << seed;
  }
}

TEST_F(PlacementAdaptation, WithoutAdaptationTheCompilersChoiceStays) {
  auto made = session("", false);
  for (int i = 0; i < 200; ++i)
    ASSERT_TRUE(run(*made, 1));
  EXPECT_TRUE(made->takeAdaptEvents().empty());
  EXPECT_TRUE(made->regionSeconds().empty());
}

// The generic profile is believed to be wrong by what the first process measured; the second starts with
// that.
TEST_F(PlacementAdaptation, WhatWasLearnedIsKept) {
  std::vector<double> cpu = cpuSeconds(4);
  npu = cpu[0] * 3;
  std::string table = folder.file("p.learned");
  auto first = session("", true, table);
  first->setVirtualSlowdown(8, 8);
  for (int i = 0; i < 200; ++i)
    ASSERT_TRUE(run(*first, 4));
  ASSERT_TRUE(first->saveLearned(table).isOk());
  std::vector<bool> before = placementOf(*first);
  auto second = session("", true, table);
  EXPECT_TRUE(second->notes().empty());
  second->setVirtualSlowdown(8, 8);
  ASSERT_TRUE(run(*second, 4));
  EXPECT_EQ(placementOf(*second), before) << "from the first run on";
}

TEST_F(PlacementAdaptation, TablesOfOthersAreIgnored) {
  std::string table = folder.file("p.learned");
  auto first = session("", true, table);
  ASSERT_TRUE(run(*first, 4));
  ASSERT_TRUE(first->saveLearned(table).isOk());
  std::ifstream file(table);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  auto noteOf = [&](const std::string &content) {
    std::ofstream(table) << content;
    auto made = session("", true, table);
    EXPECT_TRUE(run(*made, 4));
    return made->notes().empty() ? "" : made->notes()[0];
  };
  EXPECT_EQ(noteOf(text), "");
  std::string other = text;
  size_t at = other.find("\"machine\": \"") + 12;
  other[at] = other[at] == '0' ? '1' : '0';
  EXPECT_THAT(noteOf(other), HasSubstr("was learned for another machine; it is ignored"));
  for (const std::string &broken : {std::string("{"), std::string("[]"), std::string(R"({"buckets": 3})")})
    EXPECT_THAT(noteOf(broken), HasSubstr("is no table of what was learned; it is ignored"));
  std::string wrong = text;
  wrong.replace(wrong.find("\"variants\": ["), 13, "\"variants\": [-7, ");
  EXPECT_THAT(noteOf(wrong), HasSubstr("bucket 0 is no list of times and variants; it is ignored"));
}

} // namespace
} // namespace dspark::test
