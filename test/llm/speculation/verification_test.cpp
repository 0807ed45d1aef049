// What verification promises: the output of plain decoding, token by token for deterministic drafts and in
// distribution for drawn ones; stops and limits inside what was accepted.
#include "ToyDecoding.h"
#include <gmock/gmock.h>

namespace dspark::llm {
namespace {
using namespace toy;
using testing::HasSubstr;

const Tokens kPrompt = {1, 0};
constexpr size_t kLength = 4; // of the compared continuations: 81 outcomes

Tokens plain(const Model &model, uint64_t seed, size_t length) {
  Sequence sequence(model, seed, kPrompt);
  while (sequence.output().size() < length)
    EXPECT_TRUE(sequence.step({}, 0).isOk());
  return sequence.output();
}

Tokens speculated(const Model &model, const Model &drafter, uint64_t seed, size_t length, bool isDrawn) {
  Sequence sequence(model, seed, kPrompt);
  while (sequence.output().size() < length) {
    const size_t drafts = size_t(4 * keyed({seed, sequence.tokens.size(), 77}));
    const Draft draft = draftBy(drafter, sequence.tokens, seed, int32_t(drafts), isDrawn);
    EXPECT_TRUE(checkDraft(draft, 3, model.vocabulary).isOk());
    EXPECT_TRUE(sequence.step(draft, drafts).isOk());
  }
  Tokens output = sequence.output();
  output.resize(length);
  return output;
}

TEST(Verification, deterministicDraftsGiveTheTokensOfPlainDecoding) {
  const Model model{.vocabulary = 7};
  for (uint64_t seed = 0; seed < 200; ++seed)
    for (uint64_t variant : {0, 1}) // the model's own likeliest tokens, and another's
      EXPECT_EQ(speculated(model, {.vocabulary = 7, .variant = variant}, seed, 50, false),
                plain(model, seed, 50));
}

TEST(Verification, greedyOutputIsThatOfPlainDecodingForDrawnDraftsToo) {
  const Model model{.vocabulary = 5}, drafter{.vocabulary = 5, .variant = 1};
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Sequence sequence(model, seed, kPrompt), expected(model, seed, kPrompt);
    sequence.isGreedy = expected.isGreedy = true;
    while (sequence.tokens.size() < 40)
      ASSERT_TRUE(sequence.step(draftBy(drafter, sequence.tokens, seed, 3, true), 3).isOk());
    while (expected.tokens.size() < sequence.tokens.size())
      ASSERT_TRUE(expected.step({}, 0).isOk());
    EXPECT_EQ(sequence.tokens, expected.tokens);
  }
}

TEST(Verification, drawnDraftsKeepTheJointDistribution) {
  for (double topP : {1.0, 0.8}) {
    const Model model{.topP = topP};
    for (const Model &drafter : {Model{.variant = 1}, Model{.variant = 2, .sharpness = 4, .topP = 0.8}}) {
      Histogram histogram;
      for (uint64_t seed = 0; seed < 25000; ++seed)
        histogram.add(speculated(model, drafter, seed, kLength, true));
      EXPECT_LT(deviationFrom(model, kPrompt, kLength, histogram), 5);
    }
  }
}

TEST(Verification, theTestSeesADraftThatHidesItsDistribution) {
  // Likeliest tokens that claim to be drawn from the softmax, a mistake that engines have shipped.
  const Model model, drafter{.variant = 1};
  Histogram histogram;
  for (uint64_t seed = 0; seed < 25000; ++seed) {
    Sequence sequence(model, seed, kPrompt);
    while (sequence.output().size() < kLength) {
      Draft draft = draftBy(drafter, sequence.tokens, seed, 2, false);
      Tokens history = sequence.tokens;
      for (int32_t token : draft.tokens) {
        draft.drawnFrom.push_back(drafter.next(history));
        history.push_back(token);
      }
      ASSERT_TRUE(sequence.step(draft, 2).isOk());
    }
    Tokens output = sequence.output();
    output.resize(kLength);
    histogram.add(output);
  }
  EXPECT_GT(deviationFrom(model, kPrompt, kLength, histogram), 20);
}

TEST(Verification, acceptsAllOfAPerfectDraftAndAddsOne) {
  const Model model;
  Sequence sequence(model, 3, kPrompt);
  const Draft draft = draftBy(model, kPrompt, 3, 3, true); // q = p: p/q is 1 and u below it
  const auto verdict = sequence.step(draft, 3);
  ASSERT_TRUE(verdict.isOk());
  EXPECT_EQ(verdict->judged, 3);
  EXPECT_EQ(verdict->accepted, 3);
  EXPECT_EQ(verdict->committed, 4);
  EXPECT_FALSE(verdict->ended);
}

TEST(Verification, endsInsideAnAcceptedPrefixWithoutATokenMore) {
  const Model model{.vocabulary = 5};
  const Tokens expected = plain(model, 9, 8);
  Sequence sequence(model, 9, kPrompt);
  Draft draft;
  draft.tokens = expected;
  sequence.limit = 3;
  auto verdict = sequence.step(draft, 8);
  ASSERT_TRUE(verdict.isOk());
  EXPECT_TRUE(verdict->ended);
  EXPECT_EQ(verdict->accepted, 3);
  EXPECT_EQ(verdict->judged, 3);
  EXPECT_EQ(sequence.output(), Tokens(expected.begin(), expected.begin() + 3));

  Sequence stopped(model, 9, kPrompt);
  stopped.stopToken = expected[4];
  const size_t stop = size_t(std::find(expected.begin(), expected.end(), expected[4]) - expected.begin());
  verdict = stopped.step(draft, 8);
  ASSERT_TRUE(verdict.isOk());
  EXPECT_EQ(stopped.output(), Tokens(expected.begin(), expected.begin() + long(stop) + 1));
  EXPECT_TRUE(verdict->ended);
}

TEST(Verification, residualIsWhatTheDraftLeft) {
  const Distribution p{{0, 1, 4}, {0.5f, 0.3f, 0.2f}}, q{{1, 2, 4}, {0.1f, 0.5f, 0.4f}};
  const Distribution rest = residual(p, q);
  EXPECT_EQ(rest.tokens, (std::vector<int32_t>{0, 1}));
  EXPECT_NEAR(rest.probabilities[0], 0.5 / 0.7, 1e-6);
  EXPECT_NEAR(rest.probabilities[1], 0.2 / 0.7, 1e-6);
  EXPECT_EQ(residual(p, p).tokens, p.tokens) << "nothing left: p itself";
  EXPECT_EQ(residual(p, {{7}, {1.0f}}).tokens, p.tokens);
}

TEST(Verification, refusesDraftsThatBreakTheRules) {
  const auto refusal = [](Tokens tokens, std::vector<Distribution> drawnFrom = {},
                          std::vector<float> confidence = {}) {
    return checkDraft({tokens, drawnFrom, confidence, 0}, 2, 10).message();
  };
  const Distribution fine{{3, 5}, {0.5f, 0.5f}};
  EXPECT_EQ(refusal({3, 5}, {fine, fine}, {0.5f, 0.5f}), "");
  EXPECT_EQ(refusal({1, 2, 3}), "a draft has 3 tokens, limit 2");
  EXPECT_EQ(refusal({10}), "a draft has token 10 of a vocabulary of 10");
  EXPECT_EQ(refusal({3, 5}, {fine}), "a draft of 2 tokens has 1 distributions");
  EXPECT_THAT(refusal({4}, {fine}), HasSubstr("gives the drawn token 4 no probability"));
  EXPECT_THAT(refusal({3}, {{{5, 3}, {0.5f, 0.5f}}}), HasSubstr("expected ascending tokens"));
  EXPECT_THAT(refusal({3}, {{{3}, {0.4f}}}), HasSubstr("sums to 0.4"));
  EXPECT_THAT(refusal({3}, {{{3}, {NAN}}}), HasSubstr("the probability nan"));
  EXPECT_THAT(refusal({3}, {}, {1.0f}), HasSubstr("expected within (0, 1)"));
}

} // namespace
} // namespace dspark::llm
