// Drafters over a target's hidden states: what they draft is what their network says, however the context
// came, whatever was rejected, truncated or evicted.
#include "ToyDrafts.h"
#include <gmock/gmock.h>

namespace dspark::llm {
namespace {
using namespace toy;
using testing::HasSubstr;
using testing::IsEmpty;

const Model kModel{.vocabulary = 5, .sharpness = 3};

// A drafter of either kind, and the target's cache that its sequences have pages of.
struct Fixture {
  std::unique_ptr<Drafter> drafter;
  TargetCache target{4};
  std::map<SequenceId, Tokens> texts = {};
  const int64_t *contextRows = nullptr;

  void begin(SequenceId id, const Tokens &prompt) {
    EXPECT_TRUE(drafter->begin(id).isOk());
    commit(id, prompt);
  }
  void commit(SequenceId id, const Tokens &tokens) {
    EXPECT_TRUE(drafter->append(id, tokens).isOk());
    texts[id].insert(texts[id].end(), tokens.begin(), tokens.end());
    target.write(size_t(id), texts[id]);
  }
  DraftRequest request(SequenceId id, int32_t limit, const DraftPipeline *pipeline = nullptr) const {
    return {id, limit, pipeline, target.pages(size_t(id))};
  }
  std::vector<Draft> propose(std::vector<DraftRequest> requests) {
    std::vector<Draft> drafts(requests.size());
    const Status status = drafter->propose(requests, drafts);
    EXPECT_TRUE(status.isOk()) << status.message();
    return drafts;
  }
  Tokens draft(SequenceId id, int32_t limit) { return propose({request(id, limit)})[0].tokens; }
};

Fixture blocks(bool hasHead = true, bool anchorPredicts = true, int64_t pages = 64, int64_t maxRows = 24,
               float leastSurvival = 0) {
  Fixture f;
  auto network = std::make_unique<ToyBlock>(kModel, f.target.slots, hasHead, anchorPredicts, pages, maxRows);
  f.contextRows = &network->contextRows;
  f.drafter = std::move(*BlockDrafter::create("dspark", std::move(network), 5, leastSurvival));
  return f;
}

Fixture features(int64_t pages = 64, int64_t maxRows = 8) {
  Fixture f;
  auto network = std::make_unique<ToyFeatures>(kModel, f.target.slots, pages, maxRows);
  f.contextRows = &network->contextRows;
  f.drafter =
      std::move(*Eagle3Drafter::create(std::move(network), 5, {.longestDraft = 4, .leastSurvival = 0}));
  return f;
}

Tokens likeliest(const Tokens &history, int32_t count) {
  return draftBy(kModel, history, 0, count, false).tokens;
}

std::vector<Fixture> both() {
  std::vector<Fixture> list;
  list.push_back(blocks());
  list.push_back(blocks(true, false));
  list.push_back(features());
  return list;
}

TEST(HiddenStateDrafters, draftTheLikeliestTokensOfSeveralSequencesInBatches) {
  std::vector<Fixture> all = both();
  for (Fixture &f : all) {
    const Tokens prompts[] = {{1, 4}, {0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1, 2}, {4, 4, 3}, Tokens(40, 2)};
    for (SequenceId id = 0; id < 4; ++id)
      f.begin(id, prompts[id]);
    EXPECT_GT(f.drafter->backlog(3), 30);
    const auto drafts = f.propose({f.request(0, 4), f.request(1, 3), f.request(2, 0), f.request(3, 9)});
    EXPECT_EQ(drafts[0].tokens, likeliest(prompts[0], 4));
    EXPECT_EQ(drafts[1].tokens, likeliest(prompts[1], 3));
    EXPECT_THAT(drafts[2].tokens, IsEmpty());
    EXPECT_EQ(drafts[3].tokens, likeliest(prompts[3], 4)) << "the longest draft";
    for (const Draft &draft : drafts) {
      EXPECT_TRUE(draft.isDeterministic());
      EXPECT_TRUE(checkDraft(draft, 9, 5).isOk());
    }
    EXPECT_EQ(f.drafter->backlog(3), 0);
    EXPECT_EQ(*f.contextRows, 1 + 12 + 39);
  }
}

TEST(HiddenStateDrafters, takeEveryHiddenStateInOnceAndKeepNoDraft) {
  std::vector<Fixture> all = both();
  for (Fixture &f : all) {
    f.begin(2, {1, 2, 3});
    for (int round = 0; round < 12; ++round) {
      const int32_t limit = 1 + round % 4;
      const Tokens drafted = f.draft(2, limit);
      ASSERT_EQ(drafted, likeliest(f.texts[2], limit));
      Tokens committed(drafted.begin(), drafted.begin() + round % (limit + 1)); // some are accepted
      committed.push_back(int32_t(5 * keyed({uint64_t(round)})));
      f.commit(2, committed);
    }
    // EAGLE-3 computes the row again that gives the next draft.
    EXPECT_LE(*f.contextRows, int64_t(f.texts[2].size()) + 12);
  }
}

TEST(HiddenStateDrafters, proposeAgainTruncateAndStopAtOneToken) {
  std::vector<Fixture> all = both();
  for (Fixture &f : all) {
    f.begin(1, {1, 2, 3, 4, 0});
    EXPECT_EQ(f.draft(1, 4), likeliest(f.texts[1], 4));
    EXPECT_EQ(f.draft(1, 4), likeliest(f.texts[1], 4)) << "a step that was not run";
    ASSERT_TRUE(f.drafter->truncate(1, 2).isOk());
    f.texts[1] = {1, 2};
    f.commit(1, {4, 4});
    EXPECT_EQ(f.draft(1, 4), likeliest(f.texts[1], 4));
    f.begin(3, {2});
    const Tokens one = f.draft(3, 3); // without a hidden state EAGLE-3 has nothing to go on
    EXPECT_TRUE(one.empty() || one == likeliest({2}, 3));
    EXPECT_THAT(f.propose({{1, 4, nullptr, {}}})[0].tokens, IsEmpty()) << "without the target's pages";
  }
}

TEST(HiddenStateDrafters, evictTheLeastRecentAndComputeItAgain) {
  Fixture small[] = {blocks(true, true, 6), features(6)};
  for (Fixture &f : small) {
    const Tokens texts[] = {{1, 2, 3, 4, 0}, {2, 2, 2, 2, 2}, {0, 4, 0, 4, 0}, {3, 3, 1, 1, 2}};
    for (SequenceId id = 0; id < 4; ++id) // each takes two or three of six pages
      f.begin(id, texts[id]);
    for (SequenceId id : {0, 1, 2, 3, 0, 1})
      EXPECT_EQ(f.draft(id, 4), likeliest(texts[id], 4));
    for (SequenceId id = 0; id < 4; ++id)
      f.drafter->forget(id);
    f.begin(2, Tokens(19, 1));
    EXPECT_EQ(f.draft(2, 4).size(), 4u) << "all pages are free again";
  }
}

TEST(HiddenStateDrafters, drawByThePipelineAndRecordWhatTheyDrewFrom) {
  std::vector<Fixture> all = both();
  for (Fixture &f : all) {
    f.begin(1, {3, 1});
    const Pipeline pipeline(11, 2);
    const Draft draft = f.propose({f.request(1, 4, &pipeline)})[0],
                expected = draftBy(kModel, {3, 1}, 11, 4, true);
    EXPECT_EQ(draft.tokens, expected.tokens);
    ASSERT_EQ(draft.drawnFrom.size(), 4u);
    for (size_t j = 0; j < 4; ++j)
      EXPECT_NEAR(probabilityOf(draft.drawnFrom[j], draft.tokens[j]),
                  probabilityOf(expected.drawnFrom[j], draft.tokens[j]), 1e-5);
    EXPECT_TRUE(checkDraft(draft, 4, 5).isOk());
  }
}

TEST(BlockDrafter, confidencesAreTheHeadsAndEndTheDraft) {
  Fixture f = blocks(true, true, 64, 24, /*leastSurvival=*/0.6f);
  f.begin(1, {3, 1});
  const Draft draft = f.propose({f.request(1, 4)})[0];
  ASSERT_EQ(draft.tokens.size(), draft.confidence.size());
  int32_t previous = 1;
  double survival = 1;
  for (size_t k = 0; k < draft.tokens.size(); ++k) { // of the row and the token before, never of the token
    const double expected = 1 / (1 + std::exp(-(1.5 - double(k) / 4 + previous % 2)));
    EXPECT_NEAR(draft.confidence[k], expected, 1e-6);
    survival *= expected;
    previous = draft.tokens[k];
  }
  EXPECT_GE(survival, 0.6);
  EXPECT_LT(draft.tokens.size(), 4u);
}

TEST(BlockDrafter, withoutAHeadTheRowsDoNotDependOnEachOther) {
  Fixture f = blocks(/*hasHead=*/false);
  f.begin(1, {3, 1});
  const Draft draft = f.propose({f.request(1, 3)})[0];
  EXPECT_EQ(draft.tokens, Tokens(3, likeliest({3, 1}, 1)[0]));
  EXPECT_NEAR(draft.confidence[2], probabilityOf(kModel.next(Tokens{3, 1}), draft.tokens[2]), 1e-4);
}

TEST(HiddenStateDrafters, refuseNetworksThatDoNotFit) {
  const auto block = [](int32_t vocabulary, int64_t pages, int64_t maxRows) {
    auto network = std::make_unique<ToyBlock>(kModel, TargetCache(1).slots, true, true, pages, maxRows);
    return BlockDrafter::create("dspark", std::move(network), vocabulary).status().message();
  };
  EXPECT_EQ(block(6, 64, 8), "the draft has a vocabulary of 5, the model one of 6");
  EXPECT_EQ(block(5, 64, 3), "blocks of 4 rows do not fit batches of 3 rows and 64 pages");
  const auto eagle = [](int32_t vocabulary, int64_t pages) {
    auto network = std::make_unique<ToyFeatures>(kModel, TargetCache(1).slots, pages);
    return Eagle3Drafter::create(std::move(network), vocabulary, {}).status().message();
  };
  EXPECT_EQ(eagle(6, 64), "the draft has a vocabulary of 5, the model one of 6");
  EXPECT_THAT(eagle(5, 0), HasSubstr("no pages"));
}

} // namespace
} // namespace dspark::llm
