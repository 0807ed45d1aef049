#include "runtime/llm/model/Perplexity.h"
#include <cmath>
#include <gmock/gmock.h>

namespace dspark::llm {
namespace {

// Says that the next token is the row's token + 1 with probability `sure`, all others alike; remembers what
// it was asked.
class Counter : public ForwardModel {
public:
  explicit Counter(double sure)
      : known{.vocabulary = 10, .contextLength = 64, .pageSize = 4, .pages = 16, .maxRows = 5} {
    other = float(std::log((1 - sure) / 9));
    right = float(std::log(sure));
  }
  const ModelFacts &facts() const override { return known; }
  StatusOr<std::span<const float>> forward(const ForwardBatch &batch) override {
    firstTokens.push_back(batch.tokens[0]);
    rows = std::max(rows, batch.tokens.size());
    logits.clear();
    for (int32_t row : batch.logitRows)
      for (int32_t token = 0; token < 10; ++token)
        logits.push_back(token == (batch.tokens[size_t(row)] + 1) % 10 ? right : other);
    return std::span<const float>(logits);
  }
  Status copyPage(int32_t, int32_t) override { return Status::ok(); }

  ModelFacts known;
  float right, other;
  std::vector<float> logits;
  std::vector<int32_t> firstTokens;
  size_t rows = 0;
};

std::vector<int32_t> counting(int n) {
  std::vector<int32_t> tokens;
  for (int i = 0; i < n; ++i)
    tokens.push_back(i % 10);
  return tokens;
}

TEST(Perplexity, isTheInverseOfTheProbability) {
  Counter model(0.25);
  auto result = measurePerplexity(model, counting(50), {.context = 16});
  ASSERT_TRUE(result.isOk()) << result.status().message();
  EXPECT_NEAR(result->perplexity, 4, 1e-5); // f32 logits: log(0.25) is off by at most 2^-24 of it
  EXPECT_NEAR(result->standardError, 0, 1e-5);
  EXPECT_EQ(result->chunks, 3);
  EXPECT_EQ(result->tokens, 3 * 7); // tokens 9 to 15 of each chunk
  EXPECT_LE(model.rows, 5u);
}

TEST(Perplexity, tokensThatComeAsASurpriseCost) {
  Counter model(0.25);
  auto tokens = counting(16);
  tokens[12] = 7; // not 2: costs 3/4/9 instead of 1/4, and so does the token behind it
  auto result = measurePerplexity(model, tokens, {.context = 16});
  ASSERT_TRUE(result.isOk());
  EXPECT_NEAR(result->perplexity, std::exp((5 * std::log(4) + 2 * std::log(12)) / 7), 1e-5);
}

TEST(Perplexity, theBeginTokenTakesThePlaceOfTheFirst) {
  Counter model(0.5);
  ASSERT_TRUE(measurePerplexity(model, counting(32), {.context = 16, .chunks = 1, .beginToken = 9}).isOk());
  EXPECT_EQ(model.firstTokens[0], 9);
  EXPECT_EQ(model.firstTokens.size(), 4u); // one chunk, 5 rows a step
}

TEST(Perplexity, refusals) {
  Counter model(0.5);
  EXPECT_THAT(measurePerplexity(model, counting(9), {.context = 16}).status().message(),
              testing::HasSubstr("the text has 9 tokens, expected at least 16"));
  EXPECT_THAT(measurePerplexity(model, counting(90), {.context = 65}).status().message(),
              testing::HasSubstr("context is 65, expected 4 to 64"));
  model.right = NAN;
  EXPECT_THAT(measurePerplexity(model, counting(16), {.context = 16}).status().message(),
              testing::HasSubstr("logits of token 8 are not finite"));
}

} // namespace
} // namespace dspark::llm
