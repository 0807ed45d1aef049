// Plans whose steps run on stub devices give the bits that the CPU gives, whatever crosses and whatever goes
// wrong.
#include "runtime/executor/Session.h"
#include "test/runtime/PlanBuilder.h"
#include <fstream>
#include <gmock/gmock.h>

namespace dspark::test {
namespace {

using testing::HasSubstr;

constexpr const char *kLink = R"("link_latency_us": 5, "link_in_gbytes_per_s": 1, "link_out_gbytes_per_s": 1,
  "ops": [{"launch_us": 1}])";

class DeviceSteps : public testing::Test {
protected:
  // x [batch, 4]: a = relu(x); b = a + w; c = exp(b); d = c * a; y = -d
  // `choices`: of every region, for batches of 1 and 64.
  void write(const std::vector<int> &devicesOfSteps, const std::vector<int> &choices = {}) {
    PlanBuilder b(folder.file("p.dsp"));
    int x = b.input("x", DType::F32, {b.symbol("batch"), b.number(4)});
    int w = b.constant<float>(DType::F32, {4}, {1, -2, 3, -4});
    int a = b.kernel("unary", {x}, "relu");
    int sum = b.kernel("binary", {a, w}, "add");
    int c = b.kernel("unary", {sum}, "exp");
    int d = b.kernel("binary", {c, a}, "mul");
    b.output(b.kernel("unary", {d}, "neg"), "y");
    b.device("npu");
    b.device("gpu");
    for (size_t step = 0; step < devicesOfSteps.size(); ++step)
      b.region({int(step)}, {0, 1, 2}, devicesOfSteps[step]).choices = choices;
    for (int64_t size : choices.empty() ? std::vector<int64_t>() : std::vector<int64_t>{1, 64}) {
      b.plan.sizes.push_back(std::make_unique<fb::SizesT>());
      b.plan.sizes.back()->symbols = {0};
      b.plan.sizes.back()->sizes = {size};
    }
    b.finish();
  }
  std::unique_ptr<Session> session(const std::string &faults = "", bool hasDevices = true,
                                   double deadline = kDeviceDeadline) {
    SessionOptions options;
    options.threads = 1;
    options.deviceDeadline = deadline;
    if (hasDevices)
      for (const char *name : {"npu", "gpu"}) {
        std::string path = folder.file(std::string(name) + ".json");
        std::ofstream(path) << "{" << kLink << (name[0] == 'n' ? faults : "") << "}";
        options.devices.push_back({name, STUB, path});
      }
    auto file = PlanFile::open(folder.file("p.dsp"));
    EXPECT_TRUE(file.isOk()) << file.status().message();
    auto program = Program::create(*file);
    EXPECT_TRUE(program.isOk()) << program.status().message();
    auto made = Session::create(*program, options);
    EXPECT_TRUE(made.isOk()) << made.status().message();
    return std::move(*made);
  }
  std::vector<float> run(Session &session, int64_t batch = 3) {
    std::vector<float> x(size_t(batch) * 4);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = float(i % 7) * 0.3f - 1;
    int64_t dims[] = {batch, 4};
    BorrowedTensor input{x.data(), DType::F32, 2, dims, nullptr};
    Status status = session.run(std::span<const BorrowedTensor>(&input, 1));
    EXPECT_TRUE(status.isOk()) << status.message();
    if (!status.isOk())
      return {};
    auto *y = session.output(0).as<float>();
    return {y, y + x.size()};
  }
  BoundPlan bind(Session &session) {
    int64_t dims[] = {3, 4};
    float x[12];
    BorrowedTensor input{x, DType::F32, 2, dims, nullptr};
    auto bound = session.bind(std::span<const BorrowedTensor>(&input, 1));
    EXPECT_TRUE(bound.isOk()) << bound.status().message();
    return std::move(*bound);
  }
  TemporaryFolder folder;
};

TEST_F(DeviceSteps, EveryPlacementGivesTheSameBits) {
  write({0, 0, 0, 0, 0});
  std::vector<float> expected = run(*session("", false));
  auto made = session();
  for (int code = 0; code < 243; ++code) {
    Placement placement;
    for (int i = 0, rest = code; i < 5; ++i, rest /= 3)
      placement.push_back(uint8_t(rest % 3));
    made->place(placement);
    // Twice: also a warm run.
    EXPECT_EQ(run(*made), expected) << code;
    EXPECT_EQ(run(*made), expected) << code;
  }
}

TEST_F(DeviceSteps, ValuesCrossOncePerDirection) {
  write({0, 1, 1, 1, 0}); // a is used twice on the NPU, c and b stay there
  auto made = session();
  BoundPlan bound = bind(*made);
  ASSERT_EQ(bound.transfers.size(), 2u);
  EXPECT_EQ(bound.transfers[0].to, 1);
  EXPECT_EQ(bound.transfers[1].from, 1);
  EXPECT_EQ(bound.transfers[0].bytes, 48u);
  std::vector<int> found;
  for (const BoundStep &step : bound.steps)
    found.push_back(step.device);
  EXPECT_EQ(found, (std::vector<int>{0, 1, 1, 1, 0}));
  auto crossings = crossingsOf(made->program(), chosenPlacement(made->program()));
  ASSERT_EQ(crossings.size(), 2u);
  EXPECT_EQ(crossings[0].step, 0);
  EXPECT_EQ(crossings[0].firstUse, 1);
  EXPECT_EQ(crossings[1].step, 3);
  EXPECT_EQ(crossings[1].firstUse, 4);
}

TEST_F(DeviceSteps, FromDeviceToDeviceThroughTheHost) {
  write({1, 2, 2, 1, 1}); // x in; a out and in to the GPU; c out and in; y out
  auto made = session();
  EXPECT_EQ(bind(*made).transfers.size(), 6u);
  EXPECT_EQ(crossingsOf(made->program(), chosenPlacement(made->program())).size(), 6u);
}

TEST_F(DeviceSteps, WithoutPlugInsAllRunsOnTheCpu) {
  write({1, 1, 1, 1, 1});
  auto made = session("", false);
  EXPECT_TRUE(bind(*made).transfers.empty());
  EXPECT_FALSE(run(*made).empty());
}

TEST_F(DeviceSteps, AnotherShapeIsAnotherTrace) {
  write({1, 1, 0, 1, 1});
  auto made = session();
  auto plain = session("", false);
  for (int64_t batch : {1, 5, 300, 1})
    EXPECT_EQ(run(*made, batch), run(*plain, batch)) << batch;
}

// At any launch: the request completes with the right bits, and the device is left.
// Few rows stay on the CPU, many go to the NPU, and the nearest size decides.
TEST_F(DeviceSteps, SizesHaveChoicesOfTheirOwn) {
  write({2, 2, 2, 2, 2}, {0, 1});
  auto made = session(R"(, "faults": [{"kind": "fault", "from": 100}])");
  const Placement onCpu, onNpu = {1, 1, 1, 1, 1};
  for (auto [batch, expected] :
       {std::pair<int64_t, Placement>{1, onCpu}, {7, onCpu}, {9, onNpu}, {200, onNpu}, {2, onCpu}}) {
    run(*made, batch);
    EXPECT_EQ(made->placement(), expected) << batch;
  }
  for (int i = 0; i < 30; ++i)
    run(*made, 64);
  EXPECT_EQ(made->placement(), onCpu) << "the NPU has failed";
  run(*made, 1);
  run(*made, 64);
  EXPECT_EQ(made->placement(), onCpu) << "and is not asked again";
}

TEST_F(DeviceSteps, FaultsAreSurvived) {
  write({1, 1, 1, 1, 1});
  std::vector<float> expected = run(*session("", false));
  for (const char *kind : {"fault", "memory"})
    for (int at : {0, 2, 4, 7}) {
      auto made = session(", \"faults\": [{\"kind\": \"" + std::string(kind) +
                          "\", \"bytes\": 1, \"from\": " + std::to_string(at) + "}]");
      for (int i = 0; i < 3; ++i)
        EXPECT_EQ(run(*made), expected) << kind << " at launch " << at << ", run " << i;
      auto events = made->takeAdaptEvents();
      ASSERT_EQ(events.size(), 1u) << kind << " at launch " << at;
      EXPECT_EQ(events[0].reason, kind);
      EXPECT_THAT(events[0].detail, HasSubstr("device 'npu'"));
    }
}

TEST_F(DeviceSteps, HangsAreSurvived) {
  write({1, 0, 1, 1, 1});
  std::vector<float> expected = run(*session("", false));
  auto made = session(", \"faults\": [{\"kind\": \"hang\", \"from\": 2}]", true, 1);
  EXPECT_EQ(run(*made), expected);
  auto events = made->takeAdaptEvents();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_THAT(events[0].detail, HasSubstr("did not end within"));
}

TEST_F(DeviceSteps, TooLittleMemoryIsNotAskedFor) {
  write({1, 1, 1, 1, 1});
  std::vector<float> expected = run(*session("", false), 300);
  auto made = session(", \"memory_bytes\": 2000");
  EXPECT_EQ(run(*made, 300), expected);
  auto events = made->takeAdaptEvents();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].reason, "memory");
  EXPECT_THAT(events[0].detail, HasSubstr("are left"));
}

// The condition of an If lies on a device; so do values that its branches and a view of one use.
TEST_F(DeviceSteps, ControlFlowSeesDeviceValues) {
  auto build = [&](int device) {
    PlanBuilder b(folder.file("p.dsp"));
    int x = b.input("x", DType::F32, {b.symbol("batch"), b.number(4)});
    int zero = b.constant<float>(DType::F32, {}, {0});
    int shape = b.constant<int64_t>(DType::I64, {1}, {-1});
    int limit = b.constant<int64_t>(DType::I64, {1}, {0});
    int a = b.kernel("unary", {x}, "exp");
    int flat = b.kernel("reshape", {a, shape});
    int first = b.kernel("gather", {flat, limit});
    int scalar = b.kernel("reshape", {first, b.constant<int64_t>(DType::I64, {0}, std::vector<int64_t>())});
    int condition = b.kernel("compare", {scalar, zero}, "gt");
    int y = b.temp();
    fb::StepT &branch = b.step(fb::StepKind::If, "", {condition}, {y});
    b.enter(branch);
    b.leave({b.kernel("unary", {a}, "neg")});
    b.enter(branch);
    b.leave({x});
    b.output(b.kernel("binary", {y, a}, "add"), "y");
    b.device("npu");
    b.device("gpu");
    for (int step : {0, 2, 4, 6})
      b.region({step}, {0, 1}, device);
    b.finish();
  };
  build(0);
  std::vector<float> expected = run(*session("", false));
  build(1);
  auto made = session();
  EXPECT_EQ(run(*made), expected);
  EXPECT_EQ(run(*made), expected);
}

} // namespace
} // namespace dspark::test
