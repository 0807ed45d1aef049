// Inputs that are states: the caller's memory, updated where it lies.
#include "runtime/executor/Session.h"
#include "test/runtime/PlanBuilder.h"
#include <functional>
#include <gmock/gmock.h>

namespace dspark {
namespace {

using test::PlanBuilder;
using test::TemporaryFolder;
using testing::ElementsAre;
using testing::HasSubstr;

// sum = state + x, and the plan's result is 2 * sum. `extra` may add uses of the state.
std::string writePlan(TemporaryFolder &folder, const std::function<void(PlanBuilder &, int)> &extra = {}) {
  std::string path = folder.file("state.dsp");
  PlanBuilder builder(path);
  int n = builder.symbol("n"), state = builder.input("state", DType::F32, {n});
  builder.plan.inputs.back()->is_state = true;
  int x = builder.input("x", DType::F32, {builder.symbol("m")});
  int sum = builder.kernel("binary", {state, x}, "add");
  builder.output(builder.kernel("binary", {sum, sum}, "add"), "y");
  if (extra)
    extra(builder, state);
  builder.finish();
  return path;
}

StatusOr<std::unique_ptr<Session>> open(const std::string &path) {
  auto file = PlanFile::open(path);
  EXPECT_TRUE(file.isOk()) << file.status().message();
  DSPARK_ASSIGN_OR_RETURN(auto program, Program::create(*file));
  return Session::create(program);
}

BorrowedTensor lend(std::vector<float> &data, const int64_t &dim) {
  return {data.data(), DType::F32, 1, &dim, nullptr};
}

TEST(State, IsUpdatedThoughNothingReadsTheResult) {
  TemporaryFolder folder;
  std::string path = folder.file("write.dsp");
  PlanBuilder builder(path);
  int n = builder.symbol("n"), state = builder.input("state", DType::F32, {n});
  builder.plan.inputs.back()->is_state = true;
  int x = builder.input("x", DType::F32, {builder.symbol("m")});
  builder.kernel("binary", {state, x}, "add");
  builder.output(builder.kernel("unary", {x}, "neg"), "y");
  builder.finish();
  auto session = open(path);
  ASSERT_TRUE(session.isOk()) << session.status().message();
  int64_t length = 3;
  std::vector<float> values = {1, 2, 3}, ones = {1, 1, 1};
  std::vector<BorrowedTensor> inputs = {lend(values, length), lend(ones, length)};
  ASSERT_TRUE((*session)->run(inputs).isOk());
  EXPECT_THAT(values, ElementsAre(2, 3, 4));
}

TEST(State, IsUpdatedWhereItLiesInEveryRun) {
  TemporaryFolder folder;
  auto session = open(writePlan(folder));
  ASSERT_TRUE(session.isOk()) << session.status().message();
  int64_t n = 3;
  std::vector<float> a = {1, 2, 3}, b = {10, 20, 30}, x = {1, 1, 1};
  for (std::vector<float> *state : {&a, &a, &b}) { // the trace is the same, the memory is not
    std::vector<BorrowedTensor> inputs = {lend(*state, n), lend(x, n)};
    ASSERT_TRUE((*session)->run(inputs).isOk());
  }
  EXPECT_THAT(a, ElementsAre(3, 4, 5));
  EXPECT_THAT(b, ElementsAre(11, 21, 31));
  EXPECT_EQ((*session)->output(0).as<float>()[2], 62);
}

TEST(State, AResultOfAnotherSizeIsRefused) {
  TemporaryFolder folder;
  auto session = open(writePlan(folder));
  ASSERT_TRUE(session.isOk());
  int64_t one = 1, n = 3;
  std::vector<float> state = {1}, x = {1, 1, 1};
  std::vector<BorrowedTensor> inputs = {lend(state, one), lend(x, n)};
  Status status = (*session)->run(inputs); // broadcast: the sum is larger than the state
  EXPECT_EQ(status.code(), Code::CorruptFile);
  EXPECT_THAT(status.message(), HasSubstr("expected as many bytes"));
  EXPECT_THAT(state, ElementsAre(1));
}

TEST(State, StridesAreRefused) {
  TemporaryFolder folder;
  auto session = open(writePlan(folder));
  ASSERT_TRUE(session.isOk());
  int64_t n = 3, stride = 2;
  std::vector<float> state(6), x = {1, 1, 1};
  std::vector<BorrowedTensor> inputs = {{state.data(), DType::F32, 1, &n, &stride}, lend(x, n)};
  EXPECT_THAT((*session)->run(inputs).message(), HasSubstr("state with strides"));
}

TEST(State, ASecondUseIsRefused) {
  TemporaryFolder folder;
  auto session = open(writePlan(folder, [](PlanBuilder &builder, int state) {
    builder.output(builder.kernel("unary", {state}, "neg"), "old");
  }));
  EXPECT_EQ(session.status().code(), Code::CorruptFile);
  EXPECT_THAT(session.status().message(), HasSubstr("state 'state' has 2 uses"));
}

} // namespace
} // namespace dspark
