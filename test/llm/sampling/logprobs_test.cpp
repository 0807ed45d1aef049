#include "runtime/llm/sampling/Logprobs.h"
#include <cmath>
#include <gmock/gmock.h>
#include <limits>

using namespace dspark::llm;

namespace {

// Logits that are log probabilities shifted by 7: raw log probabilities are those again.
TEST(Logprobs, RawOnesAreOfTheModelsLogits) {
  std::vector<float> logits(100, float(std::log(0.001)) + 7);
  logits[10] = logits[20] = float(std::log(0.3)) + 7;
  logits[30] = float(std::log(0.303)) + 7; // the sum is 97 * 0.001 + 0.903
  auto found = rawLogprobs(logits, 10, 3);
  ASSERT_TRUE(found.isOk());
  EXPECT_EQ(found->chosen.token, 10);
  EXPECT_NEAR(found->chosen.logprob, std::log(0.3), 1e-6);
  ASSERT_EQ(found->top.size(), 3u);
  EXPECT_EQ(found->top[0].token, 30);
  EXPECT_NEAR(found->top[0].logprob, std::log(0.303), 1e-6);
  EXPECT_EQ(found->top[1].token, 10);
  EXPECT_EQ(found->top[2].token, 20);
  EXPECT_TRUE(rawLogprobs(logits, 10, 0)->top.empty());
}

TEST(Logprobs, RawOnesOfABadRowAreASentence) {
  auto found = rawLogprobs(std::vector<float>{0, std::numeric_limits<float>::quiet_NaN()}, 0, 1);
  EXPECT_THAT(found.status().message(), testing::HasSubstr("logit of token 1 is not a number"));
}

TEST(Logprobs, ProcessedOnesAreOfTheDistribution) {
  const Distribution distribution{{2, 5, 9}, {0.25f, 0.5f, 0.25f}};
  const Logprobs found = processedLogprobs(distribution, 9, 2);
  EXPECT_FLOAT_EQ(found.chosen.logprob, std::log(0.25f));
  ASSERT_EQ(found.top.size(), 2u);
  EXPECT_EQ(found.top[0].token, 5);
  EXPECT_EQ(found.top[1].token, 2);
  EXPECT_EQ(processedLogprobs(distribution, 9, 20).top.size(), 3u);
  EXPECT_EQ(processedLogprobs({{4}, {1.f}}, 4, 0).chosen.logprob, 0);
}

} // namespace
