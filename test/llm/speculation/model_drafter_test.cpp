// The drafter over a model: what it drafts is what the model says, whatever was kept, taken back or evicted.
#include "ToyForwardModel.h"
#include "runtime/llm/speculation/ModelDrafter.h"
#include <gmock/gmock.h>

namespace dspark::llm {
namespace {
using namespace toy;
using testing::HasSubstr;
using testing::IsEmpty;

const Model kModel{.vocabulary = 5, .sharpness = 3};

struct Fixture {
  explicit Fixture(int64_t pages = 64, int64_t maxRows = 8, DraftLimits options = {.leastSurvival = 0}) {
    auto model = std::make_unique<ForwardToy>(kModel, pages, 4, maxRows);
    forward = model.get();
    drafter = std::move(*ModelDrafter::create(std::move(model), 5, options));
  }
  void begin(SequenceId id, const Tokens &prompt) {
    EXPECT_TRUE(drafter->begin(id).isOk() && drafter->append(id, prompt).isOk());
  }
  std::vector<Draft> propose(std::vector<DraftRequest> requests) {
    std::vector<Draft> drafts(requests.size());
    const Status status = drafter->propose(requests, drafts);
    EXPECT_TRUE(status.isOk()) << status.message();
    return drafts;
  }
  Tokens draft(SequenceId id, int32_t limit) { return propose({{id, limit, nullptr}})[0].tokens; }

  ForwardToy *forward;
  std::unique_ptr<ModelDrafter> drafter;
};

Tokens likeliest(Tokens history, int32_t count) { return draftBy(kModel, history, 0, count, false).tokens; }

TEST(ModelDrafter, draftsTheLikeliestTokensOfSeveralSequencesInBatches) {
  Fixture f;
  const Tokens prompts[] = {{1}, {0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1, 2}, {4, 4, 3}};
  for (SequenceId id = 0; id < 3; ++id)
    f.begin(id, prompts[id]);
  EXPECT_EQ(f.drafter->backlog(1), 11);
  const auto drafts = f.propose({{0, 5, nullptr}, {1, 3, nullptr}, {2, 0, nullptr}});
  EXPECT_EQ(drafts[0].tokens, likeliest(prompts[0], 5));
  EXPECT_EQ(drafts[1].tokens, likeliest(prompts[1], 3));
  EXPECT_THAT(drafts[2].tokens, IsEmpty());
  EXPECT_TRUE(drafts[0].isDeterministic());
  EXPECT_TRUE(checkDraft(drafts[0], 5, 5).isOk());
  EXPECT_NEAR(drafts[0].confidence[0], probabilityOf(kModel.next(prompts[0]), drafts[0].tokens[0]), 1e-4);
  EXPECT_EQ(f.drafter->backlog(1), 0);
}

TEST(ModelDrafter, keepsWhatWasAcceptedAndTakesBackTheRest) {
  Fixture f;
  Tokens text = {1, 2, 3};
  f.begin(7, text);
  for (int round = 0; round < 40; ++round) {
    const int32_t limit = 1 + round % 4;
    const Tokens drafted = f.draft(7, limit);
    ASSERT_EQ(drafted, likeliest(text, limit));
    const int64_t rowsBefore = f.forward->rows;
    Tokens committed(drafted.begin(), drafted.begin() + round % (limit + 1)); // some are accepted
    committed.push_back(int32_t(5 * keyed({uint64_t(round)})));
    ASSERT_TRUE(f.drafter->append(7, committed).isOk());
    text.insert(text.end(), committed.begin(), committed.end());
    ASSERT_EQ(f.draft(7, 1), likeliest(text, 1));
    ASSERT_LE(f.forward->rows - rowsBefore, 2) << "accepted drafts are not computed again";
  }
}

TEST(ModelDrafter, proposesAgainAndTruncates) {
  Fixture f;
  const Tokens text = {1, 2, 3, 4, 0};
  f.begin(7, text);
  EXPECT_EQ(f.draft(7, 4), likeliest(text, 4));
  EXPECT_EQ(f.draft(7, 4), likeliest(text, 4)) << "a step that was not run";
  ASSERT_TRUE(f.drafter->truncate(7, 3).isOk());
  EXPECT_EQ(f.draft(7, 4), likeliest({1, 2, 3}, 4));
  EXPECT_THAT(f.drafter->truncate(7, 4).message(), HasSubstr("has 3 tokens, not 4"));
  EXPECT_THAT(f.drafter->append(8, text).message(), HasSubstr("was not begun"));
}

TEST(ModelDrafter, evictsTheLeastRecentAndComputesItAgain) {
  Fixture f(4); // of 4 tokens: two sequences of two pages
  const Tokens a = {1, 2, 3, 4, 0}, b = {2, 2, 2, 2, 2}, c = {0, 4, 0, 4, 0};
  f.begin(1, a);
  f.begin(2, b);
  f.begin(3, c);
  EXPECT_EQ(f.draft(1, 3), likeliest(a, 3));
  EXPECT_EQ(f.draft(2, 3), likeliest(b, 3));
  EXPECT_EQ(f.draft(3, 3), likeliest(c, 3));
  EXPECT_EQ(f.draft(1, 3), likeliest(a, 3));
  const auto drafts = f.propose({{1, 3, nullptr}, {2, 3, nullptr}, {3, 3, nullptr}});
  EXPECT_EQ(drafts[0].tokens, likeliest(a, 3));
  EXPECT_EQ(drafts[1].tokens.size() + drafts[2].tokens.size(), 3u) << "pages for two of three";
  for (SequenceId id = 1; id <= 3; ++id)
    f.drafter->forget(id);
  f.begin(4, Tokens(13, 1));
  EXPECT_EQ(f.draft(4, 3).size(), 3u) << "all four pages are free again";
}

TEST(ModelDrafter, drawsByThePipelineAndRecordsWhatItDrewFrom) {
  Fixture f;
  const Tokens text = {3, 1};
  f.begin(1, text);
  const Pipeline pipeline(11, text.size());
  const Draft draft = f.propose({{1, 4, &pipeline}})[0];
  const Draft expected = draftBy(kModel, text, 11, 4, true);
  EXPECT_EQ(draft.tokens, expected.tokens);
  ASSERT_EQ(draft.drawnFrom.size(), 4u);
  for (size_t j = 0; j < 4; ++j)
    EXPECT_NEAR(probabilityOf(draft.drawnFrom[j], draft.tokens[j]),
                probabilityOf(expected.drawnFrom[j], draft.tokens[j]), 1e-5);
  EXPECT_TRUE(checkDraft(draft, 4, 5).isOk());
}

TEST(ModelDrafter, stopsWhereSurvivalIsTooSmall) {
  Fixture f(64, 8, {.longestDraft = 8, .leastSurvival = 0.3f});
  f.begin(1, {1});
  const Draft draft = f.propose({{1, 8, nullptr}})[0];
  float survival = 1;
  for (float confidence : draft.confidence)
    survival *= confidence;
  EXPECT_GE(survival, 0.3f);
  EXPECT_LT(draft.tokens.size(), 8u);
}

TEST(ModelDrafter, aFailedModelStepLosesNothing) {
  Fixture f;
  const Tokens text = {1, 2, 3, 4, 0, 1, 2, 3, 4, 0};
  f.begin(1, text);
  for (int64_t failing : {1, 2, 3}) {
    f.forward->failsAt = f.forward->calls + failing;
    std::vector<Draft> drafts(1);
    const DraftRequest request{1, 3, nullptr};
    EXPECT_THAT(f.drafter->propose({&request, 1}, drafts).message(), HasSubstr("told to fail"));
    f.forward->failsAt = -1;
    ASSERT_TRUE(f.drafter->truncate(1, 5 + failing).isOk());
    ASSERT_TRUE(f.drafter->append(1, std::span(text).subspan(size_t(5 + failing))).isOk());
  }
  EXPECT_EQ(f.draft(1, 3), likeliest(text, 3));
}

TEST(ModelDrafter, refusesAModelOfAnotherVocabulary) {
  const auto refusal = [](int32_t vocabulary, DraftLimits options) {
    return ModelDrafter::create(std::make_unique<ForwardToy>(kModel, 4), vocabulary, options)
        .status()
        .message();
  };
  EXPECT_EQ(refusal(6, {}), "the draft has a vocabulary of 5, the model one of 6");
  EXPECT_EQ(refusal(5, {.longestDraft = 0}), "drafts of 0 tokens");
}

} // namespace
} // namespace dspark::llm
