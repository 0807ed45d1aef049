#include "runtime/llm/sampling/Pipeline.h"
#include <algorithm>
#include <cmath>
#include <gmock/gmock.h>
#include <limits>
#include <numeric>
#include <random>

using namespace dspark;
using namespace dspark::llm;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Distribution run(const SamplingParameters &parameters, const std::vector<float> &logits,
                 const TokenCounts &counts = {}) {
  SamplingPipeline pipeline;
  Distribution out;
  const Status status = pipeline.run(parameters, counts, logits, out);
  EXPECT_TRUE(status.isOk()) << status.message();
  return out;
}

std::string errorOf(const SamplingParameters &parameters, const std::vector<float> &logits) {
  SamplingPipeline pipeline;
  Distribution out;
  return pipeline.run(parameters, {}, logits, out).message();
}

std::vector<float> logsOf(const std::vector<double> &probabilities) {
  std::vector<float> logits;
  for (double p : probabilities)
    logits.push_back(float(std::log(p)));
  return logits;
}

// The pipeline in its plainest form: doubles and full sorts. `margin` tells how near a cut came to another
// token.
Distribution reference(const SamplingParameters &parameters, const std::vector<float> &logits,
                       double &margin) {
  struct Token {
    int32_t id;
    double p;
  };
  std::vector<Token> tokens;
  const double largest = *std::max_element(logits.begin(), logits.end());
  for (size_t i = 0; i < logits.size(); ++i)
    tokens.push_back({int32_t(i), std::exp((logits[i] - largest) / parameters.temperature)});
  std::stable_sort(tokens.begin(), tokens.end(), [](auto &a, auto &b) { return a.p > b.p; });
  if (parameters.topK > 0 && size_t(parameters.topK) < tokens.size())
    tokens.resize(size_t(parameters.topK));
  margin = 1;
  const auto cutAt = [&](double mass) {
    double sum = 0;
    for (size_t i = 0; i < tokens.size(); ++i) {
      sum += tokens[i].p;
      margin = std::min(margin, std::abs(sum / mass - 1));
      if (sum >= mass) {
        tokens.resize(i + 1);
        return;
      }
    }
  };
  const auto total = [&] {
    return std::accumulate(tokens.begin(), tokens.end(), 0., [](double sum, auto &t) { return sum + t.p; });
  };
  if (parameters.topP < 1)
    cutAt(parameters.topP * total());
  const double least = parameters.minP * tokens[0].p;
  for (const Token &token : tokens)
    margin = std::min(margin, least > 0 ? std::abs(token.p / least - 1) : 1);
  std::erase_if(tokens, [&](auto &t) { return t.p < least; });
  if (parameters.typicalP < 1) {
    const double all = total();
    double entropy = 0;
    for (const Token &token : tokens)
      entropy -= token.p / all * std::log(token.p / all);
    const auto distance = [&](const Token &t) { return std::abs(-std::log(t.p / all) - entropy); };
    std::sort(tokens.begin(), tokens.end(), [](auto &a, auto &b) { return a.id < b.id; });
    std::stable_sort(tokens.begin(), tokens.end(),
                     [&](auto &a, auto &b) { return distance(a) < distance(b); });
    for (size_t i = 1; i < tokens.size(); ++i)
      if (tokens[i].p != tokens[i - 1].p)
        margin = std::min(margin, distance(tokens[i]) - distance(tokens[i - 1]));
    cutAt(parameters.typicalP * all);
  }
  std::sort(tokens.begin(), tokens.end(), [](auto &a, auto &b) { return a.id < b.id; });
  const double all = total();
  Distribution result;
  for (const Token &token : tokens) {
    result.tokens.push_back(token.id);
    result.probabilities.push_back(float(token.p / all));
  }
  return result;
}

// Weights differ from the doubles by 2e-7 from the exponential and 2^-24 times the logit from the division by
// the temperature (logits up to 10, temperatures from 0.5: 20 * 6e-8 = 1.2e-6); a sum of them by as much.
// Cuts that come nearer than 5e-6 to another token may fall on its other side, and such rows are left out.
TEST(Pipeline, EqualsThePlainFormForRandomSettings) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> unit(0, 1);
  int compared = 0;
  for (int round = 0; round < 600; ++round) {
    const size_t sizes[] = {1, 2, 63, 64, 65, 1000, 5000};
    std::vector<float> logits(sizes[size_t(round) % 7]);
    for (float &logit : logits) // every third row has many ties
      logit = round % 3 ? unit(random) * 10 : std::floor(unit(random) * 10);
    SamplingParameters parameters;
    parameters.temperature = 0.5f + unit(random);
    if (round % 2)
      parameters.topK = 1 + int(unit(random) * (round % 4 == 1 ? 20 : 2000));
    if (round % 5)
      parameters.topP = 0.2f + 0.8f * unit(random);
    if (round % 7 < 2)
      parameters.minP = unit(random) * 0.2f;
    if (round % 3 == 1 && logits.size() < 100) // of thousands some always come near each other
      parameters.typicalP = 0.2f + 0.8f * unit(random);
    double margin = 0;
    const Distribution expected = reference(parameters, logits, margin);
    if (margin < 5e-6)
      continue;
    ++compared;
    const Distribution found = run(parameters, logits);
    ASSERT_EQ(found.tokens, expected.tokens) << "round " << round;
    for (size_t i = 0; i < found.tokens.size(); ++i)
      ASSERT_NEAR(found.probabilities[i], expected.probabilities[i], 5e-6f * expected.probabilities[i]);
  }
  EXPECT_GT(compared, 400);
}

TEST(Pipeline, ProbabilitiesSumToOneForALargeVocabulary) {
  std::vector<float> logits(262'144);
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 4);
  for (float &logit : logits)
    logit = normal(random);
  const Distribution all = run({}, logits);
  EXPECT_NEAR(std::accumulate(all.probabilities.begin(), all.probabilities.end(), 0.), 1, 1e-6);
  EXPECT_EQ(run({.topK = 40}, logits).tokens.size(), 40u);
}

TEST(Pipeline, GreedyTakesTheLowestIdOfEqualLogits) {
  std::vector<float> logits(300, 1.f);
  logits[200] = logits[130] = logits[131] = 2;
  const Distribution found = run({.temperature = 0}, logits);
  EXPECT_THAT(found.tokens, ElementsAre(130));
  EXPECT_THAT(found.probabilities, ElementsAre(1.f));
  EXPECT_THAT(run({.temperature = 0.9e-5f}, logits).tokens, ElementsAre(130));
}

TEST(Pipeline, CutsKeepTheLowestIdsOfEqualLogits) {
  const std::vector<float> logits = {0, 1, 1, 1, 1};
  EXPECT_THAT(run({.topK = 2}, logits).tokens, ElementsAre(1, 2));
  EXPECT_THAT(run({.topP = 0.3f}, logits).tokens, ElementsAre(1, 2));
}

// Probabilities 0.5 0.3 0.1 0.1. After top-k 3 the mass is 0.9, so top-p 0.85 of it needs 0.765: two tokens.
TEST(Pipeline, TopPCountsTheMassThatTopKLeaves) {
  const auto logits = logsOf({0.5, 0.3, 0.1, 0.1});
  EXPECT_THAT(run({.topP = 0.85f}, logits).tokens, ElementsAre(0, 1, 2));
  EXPECT_THAT(run({.topK = 3, .topP = 0.85f}, logits).tokens, ElementsAre(0, 1));
}

// The mass of top-p is that before min-p: 0.5 + 0.3 reach 0.75 although min-p then drops 0.3.
TEST(Pipeline, MinPComesAfterTopP) {
  EXPECT_THAT(run({.topP = 0.75f, .minP = 0.7f}, logsOf({0.5, 0.3, 0.1, 0.1})).tokens, ElementsAre(0));
  EXPECT_THAT(run({.minP = 0.25f}, logsOf({0.5, 0.3, 0.1, 0.1})).tokens, ElementsAre(0, 1));
}

// Entropy 1.168; the surprises are 0.693, 1.204, 2.303, 2.303: the nearest is the second token's.
TEST(Pipeline, TypicalPrefersWhatIsAsSurprisingAsTheWhole) {
  EXPECT_THAT(run({.typicalP = 0.2f}, logsOf({0.5, 0.3, 0.1, 0.1})).tokens, ElementsAre(1));
  EXPECT_THAT(run({.typicalP = 0.5f}, logsOf({0.5, 0.3, 0.1, 0.1})).tokens, ElementsAre(0, 1));
}

TEST(Pipeline, BiasAndPenaltiesComeBeforeTheTemperature) {
  TokenCounts counts;
  counts.addPrompt(std::vector<int32_t>{0, 1});
  counts.push(1);
  counts.push(1);
  counts.push(2);
  SamplingParameters parameters;
  parameters.temperature = 0.5f;
  parameters.repetitionPenalty = 2;
  parameters.presencePenalty = 0.25f;
  parameters.frequencyPenalty = 0.5f;
  parameters.logitBias = {{0, 1.f}, {3, -kInfinity}};
  // Token 0: (1 + 1) / 2; 1: -1 * 2 - 0.25 - 2 * 0.5; 2: 3 / 2 - 0.25 - 0.5; 3: ruled out; 4: as it was.
  const std::vector<double> logits = {1, -3.25, 0.75, 0.5};
  double sum = 0;
  for (double logit : logits)
    sum += std::exp(logit / 0.5);
  const Distribution found = run(parameters, {1, -1, 3, 9, 0.5f}, counts);
  EXPECT_THAT(found.tokens, ElementsAre(0, 1, 2, 4));
  for (size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(found.probabilities[i], std::exp(logits[i] / 0.5) / sum, 1e-6);
}

TEST(Pipeline, CountsReturnToWhereTheyWereBeforeADraft) {
  TokenCounts counts;
  counts.push(4);
  SamplingParameters parameters;
  parameters.presencePenalty = 1;
  parameters.repetitionPenalty = 1.5f;
  const std::vector<float> logits = {1, 2, 3, 4, 5};
  const Distribution before = run(parameters, logits, counts);
  for (int32_t draft : {1, 4, 1, 3})
    counts.push(draft);
  EXPECT_NE(run(parameters, logits, counts).probabilities, before.probabilities);
  for (int32_t draft : {3, 1, 4, 1})
    counts.pop(draft);
  EXPECT_EQ(run(parameters, logits, counts).probabilities, before.probabilities);
}

TEST(Pipeline, BadLogitsAreASentence) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (float temperature : {0.f, 1.f}) {
    const SamplingParameters parameters{.temperature = temperature};
    EXPECT_THAT(errorOf(parameters, {1, 2, nan}), HasSubstr("logit of token 2 is not a number"));
    std::vector<float> logits(200);
    logits[70] = kInfinity;
    EXPECT_THAT(errorOf(parameters, logits), HasSubstr("logit of token 70 is infinite"));
    EXPECT_THAT(errorOf(parameters, {-kInfinity, -kInfinity}),
                HasSubstr("rules out every one of its 2 tokens"));
    EXPECT_THAT(run(parameters, {-kInfinity, 3, -kInfinity}).tokens, ElementsAre(1));
  }
}

TEST(Pipeline, ExponentialIsWithinItsBound) {
  for (float x = 0; x > -87; x -= 0.0371f)
    ASSERT_NEAR(expNegative(x) / std::exp(double(x)), 1, 2e-7) << x;
  EXPECT_EQ(expNegative(0), 1);
  EXPECT_EQ(expNegative(-88), 0);
  EXPECT_EQ(expNegative(-kInfinity), 0);
}

TEST(Parameters, ImpossibleOnesNameValueAndLimit) {
  const auto sentence = [](const SamplingParameters &parameters) { return parameters.check(1000).message(); };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(sentence({}), "");
  EXPECT_EQ(sentence({.temperature = -0.5f}), "temperature is -0.5, it must be at least 0 and at most 100");
  EXPECT_EQ(sentence({.temperature = nan}), "temperature is nan, it must be at least 0 and at most 100");
  EXPECT_EQ(sentence({.topK = -2}), "top-k is -2, it must be at least 0 (0: all tokens)");
  EXPECT_EQ(sentence({.topP = 0}), "top-p is 0, it must be above 0 and at most 1");
  EXPECT_EQ(sentence({.minP = 1.5f}), "min-p is 1.5, it must be at least 0 and at most 1");
  EXPECT_EQ(sentence({.typicalP = 2}), "typical-p is 2, it must be above 0 and at most 1");
  EXPECT_EQ(sentence({.repetitionPenalty = 0}),
            "repetition penalty is 0, it must be above 0 and at most 100");
  EXPECT_EQ(sentence({.presencePenalty = -kInfinity}),
            "presence penalty is -inf, it must be at least -100 and at most 100");
  EXPECT_EQ(sentence({.frequencyPenalty = 101}),
            "frequency penalty is 101, it must be at least -100 and at most 100");
  EXPECT_EQ(sentence({.logitBias = {{1000, 1}}}),
            "logit bias for token 1000, but the vocabulary has 1000 tokens");
  EXPECT_EQ(sentence({.logitBias = {{5, 1}, {5, 2}}}), "logit bias for token 5 is given twice");
  EXPECT_EQ(sentence({.logitBias = {{5, 200}}}),
            "logit bias of token 5 is 200, it must be at least -100 and at most 100");
  EXPECT_EQ(sentence({.logitBias = {{5, -kInfinity}}}), "");
}

// Four tokens, 20,000 draws: chi-square with three degrees of freedom exceeds 21 once in 10,000 keys.
TEST(Draw, FollowsTheDistribution) {
  const Distribution distribution = run({}, logsOf({0.05, 0.6, 0.25, 0.1}));
  std::array<int, 4> counts = {};
  for (uint64_t position = 0; position < 20'000; ++position)
    ++counts[size_t(draw(distribution, uniform({7, 0}, position, Purpose::Token)))];
  double chiSquare = 0;
  for (size_t i = 0; i < 4; ++i) {
    const double expected = 20'000 * double(distribution.probabilities[i]);
    chiSquare += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  EXPECT_LT(chiSquare, 21);
}

TEST(Draw, StaysInsideWhereTheSumRoundsBelowOne) {
  EXPECT_EQ(draw({{3, 8}, {0.5f, 0.4999f}}, 0.99999), 8);
  EXPECT_EQ(draw({{3, 8}, {0.5f, 0.5f}}, 0), 3);
  EXPECT_EQ(draw({{3, 8}, {0.5f, 0.5f}}, 0.5), 8);
}

} // namespace
