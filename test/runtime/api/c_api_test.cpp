#include "dspark/dspark.h"
#include "test/runtime/PlanBuilder.h"
#include <atomic>
#include <gmock/gmock.h>
#include <thread>

namespace dspark {
namespace {

using test::PlanBuilder;
using testing::ElementsAre;
using testing::HasSubstr;

class CApi : public testing::Test {
protected:
  void SetUp() override {
    PlanBuilder b(folder.file("p.dsp"));
    int batch = b.symbol("batch");
    int x = b.input("x", DType::F32, {batch, b.number(2)});
    b.output(b.kernel("unary", {x}, "neg"), "y");
    b.plan.outputs[0]->dtype = uint8_t(DType::F32);
    b.plan.outputs[0]->dims = {b.expression(DimOp::Add, 0, batch, batch), -1};
    b.finish();
    ASSERT_EQ(dspark_plan_open(folder.file("p.dsp").c_str(), &plan), DSPARK_OK) << dspark_last_error();
    dspark_session_options options;
    dspark_session_options_init(&options);
    options.profile = 1;
    ASSERT_EQ(dspark_session_create(plan, &options, &session), DSPARK_OK) << dspark_last_error();
  }
  void TearDown() override {
    dspark_plan_close(plan);
    dspark_session_destroy(session);
  }
  test::TemporaryFolder folder;
  dspark_plan *plan = nullptr;
  dspark_session *session = nullptr;
  float x[4] = {1, 2, 3, 4};
  int64_t dims[2] = {2, 2};
  dspark_tensor input{x, DSPARK_F32, 2, dims, nullptr};
};

TEST_F(CApi, DevicesAreGivenByText) {
  const char *devices[] = {"npu"};
  dspark_session_options options;
  dspark_session_options_init(&options);
  options.devices = devices;
  options.device_count = 1;
  dspark_session *other = nullptr;
  EXPECT_EQ(dspark_session_create(plan, &options, &other), DSPARK_INVALID_ARGUMENT);
  EXPECT_THAT(dspark_last_error(), HasSubstr("expects NAME=LIBRARY.so"));
  EXPECT_EQ(other, nullptr);
  devices[0] = "npu=" STUB; // the plan has nothing for it, and that is no error
  options.adapt = 1;
  ASSERT_EQ(dspark_session_create(plan, &options, &other), DSPARK_OK) << dspark_last_error();
  EXPECT_EQ(dspark_session_run(other, &input, 1, nullptr, 0), DSPARK_OK) << dspark_last_error();
  EXPECT_EQ(dspark_session_save_learned(other, folder.file("learned").c_str()), DSPARK_OK)
      << dspark_last_error();
  dspark_session_destroy(other);
}

TEST_F(CApi, Info) {
  EXPECT_STREQ(dspark_version(), "0.1.0");
  ASSERT_EQ(dspark_plan_input_count(plan), 1u);
  dspark_tensor_info info;
  ASSERT_EQ(dspark_plan_input(plan, 0, &info), DSPARK_OK);
  EXPECT_STREQ(info.name, "x");
  EXPECT_EQ(info.dtype, DSPARK_F32);
  ASSERT_EQ(info.rank, 2);
  EXPECT_EQ(info.dims[0], -1);
  EXPECT_EQ(info.dims[1], 2);
  EXPECT_STREQ(info.dim_texts[0], "batch");
  EXPECT_STREQ(info.dim_texts[1], "2");
  ASSERT_EQ(dspark_plan_output(plan, 0, &info), DSPARK_OK);
  EXPECT_STREQ(info.dim_texts[0], "(batch + batch)");
  EXPECT_STREQ(info.dim_texts[1], "?");
  EXPECT_EQ(dspark_plan_output(plan, 1, &info), DSPARK_INVALID_ARGUMENT);
  EXPECT_EQ(dspark_plan_verify(plan), DSPARK_OK);
}

TEST_F(CApi, RunWithSessionAndCallerOutputs) {
  dspark_tensor output{};
  EXPECT_EQ(dspark_session_output(session, 0, &output), DSPARK_INVALID_ARGUMENT) << "nothing has run";
  ASSERT_EQ(dspark_session_run(session, &input, 1, nullptr, 0), DSPARK_OK) << dspark_last_error();
  ASSERT_EQ(dspark_session_output(session, 0, &output), DSPARK_OK);
  auto *y = static_cast<float *>(output.data);
  EXPECT_THAT(std::vector<float>(y, y + 4), ElementsAre(-1, -2, -3, -4));

  float mine[4] = {};
  int64_t strides[2] = {1, 2}; // columns first
  output = {mine, DSPARK_F32, 2, dims, strides};
  ASSERT_EQ(dspark_session_run(session, &input, 1, &output, 1), DSPARK_OK) << dspark_last_error();
  EXPECT_THAT(mine, ElementsAre(-1, -3, -2, -4));
  int64_t wrong[2] = {4, 1};
  output = {mine, DSPARK_F32, 2, wrong, nullptr};
  EXPECT_EQ(dspark_session_run(session, &input, 1, &output, 1), DSPARK_INVALID_ARGUMENT);
  EXPECT_THAT(dspark_last_error(),
              HasSubstr("output 'y' is f32[2, 2], the tensor given for it is f32[4, 1]"));

  ASSERT_EQ(dspark_session_profile_count(session), 1u);
  dspark_profile_line line;
  ASSERT_EQ(dspark_session_profile(session, 0, &line), DSPARK_OK);
  EXPECT_STREQ(line.op, "unary");
  EXPECT_THAT(line.node, HasSubstr("unary_"));
  EXPECT_EQ(line.calls, 3u);
  EXPECT_GT(line.bytes, 0);
}

// A plan is shared, a session is a thread's own: sessions are made, run on changing shapes, fail and are
// given back on several threads at once. ThreadSanitizer checks what this cannot see.
TEST_F(CApi, SessionsOfOnePlanOnSeveralThreads) {
  std::atomic<int> wrong{0};
  auto use = [&](int seed) {
    dspark_session_options options;
    dspark_session_options_init(&options);
    options.threads = 1 + seed % 3;
    dspark_session *mine = nullptr;
    wrong += dspark_session_create(plan, &options, &mine) != DSPARK_OK;
    for (int round = 0; round < 30; ++round) {
      int64_t rows = 1 + (seed + round) % 5 * 5000, shape[2] = {rows, 2};
      std::vector<float> values(size_t(rows) * 2, float(seed));
      dspark_tensor lent{values.data(), DSPARK_F32, 2, shape, nullptr}, result{};
      wrong += dspark_session_run(mine, &lent, 1, &result, 1) != DSPARK_OK;
      for (size_t i = 0; i < values.size(); ++i)
        wrong += static_cast<const float *>(result.data)[i] != -float(seed);
      lent.rank = 1;
      wrong += dspark_session_run(mine, &lent, 1, nullptr, 0) != DSPARK_INVALID_ARGUMENT;
      wrong += std::string(dspark_last_error()).find("rank 1") == std::string::npos;
      dspark_tensor_info info;
      wrong += dspark_plan_input(plan, 0, &info) != DSPARK_OK;
    }
    dspark_session_destroy(mine);
  };
  std::vector<std::thread> threads;
  for (int seed = 1; seed <= 4; ++seed)
    threads.emplace_back(use, seed);
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(CApi, Errors) {
  dspark_plan *none = plan;
  EXPECT_EQ(dspark_plan_open(folder.file("none.dsp").c_str(), &none), DSPARK_NOT_FOUND);
  EXPECT_EQ(none, nullptr);
  EXPECT_THAT(dspark_last_error(), HasSubstr("none.dsp"));
  EXPECT_EQ(dspark_plan_open(nullptr, &none), DSPARK_INVALID_ARGUMENT);
  EXPECT_EQ(dspark_session_run(session, nullptr, 1, nullptr, 0), DSPARK_INVALID_ARGUMENT);
  input.dtype = DSPARK_I64;
  EXPECT_EQ(dspark_session_run(session, &input, 1, nullptr, 0), DSPARK_INVALID_ARGUMENT);
  EXPECT_STREQ(dspark_last_error(), "input 'x' has type i64, expected f32");
  input.rank = 99;
  EXPECT_EQ(dspark_session_run(session, &input, 1, nullptr, 0), DSPARK_INVALID_ARGUMENT);
  dspark_session *failed = session;
  dspark_session_options options;
  dspark_session_options_init(&options);
  options.isa = "z80";
  EXPECT_EQ(dspark_session_create(plan, &options, &failed), DSPARK_INVALID_ARGUMENT);
  EXPECT_EQ(failed, nullptr);
  dspark_plan_close(nullptr);
  dspark_session_destroy(nullptr);
}

} // namespace
} // namespace dspark
