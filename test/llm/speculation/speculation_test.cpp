// What the engine sees of speculation: drafters that err, choices among them, limits, long contexts.
#include "ToyDecoding.h"
#include "runtime/llm/speculation/LookupDrafter.h"
#include "runtime/llm/speculation/Speculation.h"
#include <gmock/gmock.h>

namespace dspark::llm {
namespace {
using testing::HasSubstr;
using toy::keyed;
using toy::Tokens;

CostTable steps(double perDraft = 0.05) {
  return *CostTable::create(
      {{1, 0, 1}, {1, 16, 1 + 16 * perDraft}, {4, 0, 1.2}, {4, 64, 1.2 + 64 * perDraft}});
}

/// Drafts token 0 as often as it may, with a confidence.
class Constant : public Drafter {
public:
  Constant(float confidence, bool isFree) : confidence(confidence), free(isFree) {}
  std::string_view name() const override { return free ? "free" : "costly"; }
  int32_t longestDraft() const override { return 8; }
  bool isFree() const override { return free; }
  Status begin(SequenceId id) override {
    return id == refusedAtBegin ? invalidArgument("not this one") : Status();
  }
  Status append(SequenceId id, std::span<const int32_t>) override {
    return id == refusedAtAppend ? invalidArgument("no more of this one") : Status();
  }
  Status truncate(SequenceId, int64_t) override { return Status::ok(); }
  void forget(SequenceId id) override { forgotten.push_back(id); }
  Status propose(std::span<const DraftRequest> requests, std::span<Draft> drafts) override {
    for (size_t i = 0; i < requests.size(); ++i) {
      asked.push_back(requests[i].sequence);
      drafts[i].tokens.assign(size_t(requests[i].limit + tooMany), token);
      drafts[i].confidence.assign(drafts[i].tokens.size(), confidence);
    }
    return Status::ok();
  }

  float confidence;
  bool free;
  int32_t token = 0, tooMany = 0;
  SequenceId refusedAtBegin = 99, refusedAtAppend = 99;
  std::vector<SequenceId> asked, forgotten;
};

struct Fixture {
  explicit Fixture(SpeculationOptions options = {}, double perDraft = 0.05, bool withCostly = true) {
    std::vector<SpeculationSource> sources(withCostly ? 2 : 1);
    auto one = std::make_unique<Constant>(0.5f, true);
    free = one.get();
    sources[0].drafter = std::move(one);
    if (withCostly) {
      auto other = std::make_unique<Constant>(0.9f, false);
      costly = other.get();
      sources[1].drafter = std::move(other);
      sources[1].cost = *CostTable::create({{1, 1, 0.02}, {1, 8, 0.16}}, CostTable::Kind::Drafter);
    }
    speculation = std::move(*Speculation::create(10, steps(perDraft), std::move(sources), options));
  }
  std::span<const PlannedDraft> plan(std::vector<DecodingState> states, StepLoad load = {.room = 64}) {
    return speculation->plan(states, load);
  }

  Constant *free = nullptr, *costly = nullptr;
  std::unique_ptr<Speculation> speculation;
};

TEST(Speculation, choosesTheDrafterThatPromisesMoreForItsTime) {
  Fixture cheap;
  cheap.speculation->begin(1);
  // 0.7 is expected of the costly drafter before it ever drafted, 0.5 of the free one.
  EXPECT_EQ(cheap.plan({{1, 10, 8}})[0].source, 1);
  EXPECT_GT(cheap.plan({{1, 10, 8}})[0].length, 4) << "at 0.9 a token";
  cheap.costly->confidence = 0.2f;
  for (int i = 0; i < 40; ++i) { // what it promises now is little
    cheap.plan({{1, 10, 8}});
    cheap.speculation->learn(std::vector<Verdict>{{1, 0, 1, false}},
                             {.draftSeconds = 0.1, .verifySeconds = 1});
  }
  EXPECT_EQ(cheap.plan({{1, 10, 8}})[0].source, 0);
}

TEST(Speculation, keepsWithinLimitsAndRoom) {
  Fixture f;
  for (SequenceId id : {1, 2, 3})
    f.speculation->begin(id);
  const auto plan = f.plan({{1, 10, 0}, {2, 10, 2}, {3, 10, 8}}, {.room = 5});
  EXPECT_EQ(plan[0].length, 0);
  EXPECT_LE(plan[1].length, 2);
  EXPECT_LE(plan[1].length + plan[2].length, 5);
  EXPECT_GT(plan[1].length + plan[2].length, 0);
  EXPECT_EQ(f.plan({{1, 10, 8}}, {.room = 0})[0].length, 0);
  EXPECT_EQ(f.plan({{1, 10, 8}}, {.room = -3})[0].length, 0);
  EXPECT_EQ(f.plan({{1, 10, -8}})[0].length, 0);
  EXPECT_TRUE(f.plan({}).empty());
  f.speculation->learn({}, {}); // nothing was planned
  f.plan({{1, 10, 8}, {2, 10, 8}});
  f.speculation->learn(std::vector<Verdict>(5), {.draftSeconds = 0.1, .verifySeconds = 1});
  f.speculation->learn(std::vector<Verdict>(5), {.draftSeconds = 0.1, .verifySeconds = 1});
}

TEST(Speculation, aDrafterThatErrsForASequenceIsNotAskedAboutItAgain) {
  Fixture f({}, 0.05, false);
  f.free->refusedAtBegin = 1;
  f.free->refusedAtAppend = 2;
  for (SequenceId id : {1, 2, 3}) {
    f.speculation->begin(id);
    f.speculation->append(id, Tokens{1, 2});
    f.speculation->append(id, Tokens{3});
  }
  const auto plan = f.plan({{1, 3, 8}, {2, 3, 8}, {3, 3, 8}});
  EXPECT_EQ(plan[0].length + plan[1].length, 0);
  EXPECT_GT(plan[2].length, 0);
  EXPECT_EQ(f.free->asked, std::vector<SequenceId>{3});
  EXPECT_EQ(f.speculation->statistics().drafters[0].failures, 2);
  EXPECT_EQ(f.speculation->statistics().drafters[0].lastFailure, "no more of this one");
  for (SequenceId id : {1, 2, 3})
    f.speculation->forget(id);
  EXPECT_EQ(f.free->forgotten, (std::vector<SequenceId>{1, 2, 3})) << "each once";
}

TEST(Speculation, draftsThatBreakTheRulesAreNotVerified) {
  Fixture token({}, 0.05, false), tooMany({}, 0.05, false);
  token.free->token = 10;
  tooMany.free->tooMany = 1;
  for (Fixture *f : {&token, &tooMany}) {
    f->speculation->begin(1);
    EXPECT_EQ(f->plan({{1, 3, 8}})[0].length, 0);
    EXPECT_EQ(f->speculation->statistics().drafters[0].failures, 1);
    EXPECT_EQ(f->plan({{1, 3, 8}})[0].length, 0);
    EXPECT_EQ(f->free->asked.size(), 1u);
  }
  EXPECT_THAT(token.speculation->statistics().drafters[0].lastFailure, HasSubstr("vocabulary of 10"));
}

TEST(Speculation, refusesADrafterWithoutATable) {
  std::vector<SpeculationSource> sources(1);
  sources[0].drafter = std::make_unique<Constant>(0.5f, false);
  EXPECT_EQ(Speculation::create(10, steps(), std::move(sources)).status().message(),
            "drafter costly has no table of what its drafts cost");
}

TEST(Speculation, longContextsMustProveThemselves) {
  Fixture f({.longContext = 1000}, 0.2, false);
  f.free->confidence = 0.6f;
  f.speculation->begin(1);
  f.speculation->begin(2);
  const auto first = f.plan({{1, 100, 8}, {2, 5000, 8}});
  EXPECT_GT(first[0].length, first[1].length);
  for (int i = 0; i < 60; ++i) {
    std::vector<Verdict> verdicts;
    for (const PlannedDraft &planned : f.plan({{2, 5000, 8}}))
      verdicts.push_back({planned.length, planned.length, planned.length + 1, false});
    f.speculation->learn(verdicts, {.draftSeconds = 0, .verifySeconds = 1});
  }
  EXPECT_GT(f.plan({{2, 5000, 8}})[0].length, 3);
}

/// Steps and committed tokens of a text decoded with lookups that are right where the text repeats.
std::pair<int64_t, SpeculationStatistics> decode(const Tokens &text, size_t prompt, double perDraft) {
  std::vector<SpeculationSource> sources(1);
  sources[0].drafter = std::make_unique<LookupDrafter>();
  auto speculation = std::move(*Speculation::create(1000, steps(perDraft), std::move(sources)));
  speculation->begin(1);
  speculation->append(1, std::span(text).first(prompt));
  size_t at = prompt;
  int64_t count = 0;
  for (; at < text.size(); ++count) {
    const DecodingState state{1, int64_t(at), int32_t(text.size() - at) - 1, nullptr};
    const PlannedDraft planned = speculation->plan({&state, 1}, {.room = 32})[0];
    Verdict verdict;
    while (verdict.accepted < planned.length && planned.draft.tokens[size_t(verdict.accepted)] == text[at])
      ++verdict.accepted, ++at;
    verdict.judged = std::min(verdict.accepted + 1, planned.length);
    verdict.committed = verdict.accepted + (at < text.size());
    at += at < text.size();
    speculation->append(1,
                        std::span(text).subspan(at - size_t(verdict.committed), size_t(verdict.committed)));
    speculation->learn({&verdict, 1}, {.draftSeconds = 0, .verifySeconds = 1 + perDraft * planned.length});
  }
  return {count, speculation->statistics()};
}

TEST(Speculation, lookupsPayWhereTextRepeatsAndCostNothingWhereItDoesNot) {
  Tokens edited; // 600 tokens, then the same with every 25th changed, as an edited file is
  for (uint64_t i = 0; i < 600; ++i)
    edited.push_back(int32_t(900 * keyed({i})));
  for (size_t i = 0; i < 600; ++i)
    edited.push_back(i % 25 == 24 ? 950 : edited[i]);
  EXPECT_LT(decode(edited, 600, 0.1).first, 200) << "of 600 tokens";

  Tokens misleading; // pairs occur again and again, and are followed by something else each time
  for (uint64_t i = 0; i < 3000; ++i)
    misleading.push_back(i % 3 == 2 ? int32_t(900 * keyed({i})) : int32_t(i % 3));
  const auto [count, statistics] = decode(misleading, 30, 0.3);
  double seconds = 0.3 * double(statistics.drafters[0].verifiedTokens) + double(count);
  EXPECT_LT(seconds, double(misleading.size() - 30) / 0.97);
}

TEST(Speculation, equalCallsGiveEqualDecisions) {
  const auto lengths = [] {
    Fixture f;
    std::vector<int32_t> all;
    for (SequenceId id : {1, 2, 3})
      f.speculation->begin(id);
    for (uint64_t i = 0; i < 200; ++i) {
      std::vector<Verdict> verdicts;
      for (const PlannedDraft &planned : f.plan({{1, 9, 8}, {2, 9, 8}, {3, 9, 8}})) {
        all.push_back(planned.length);
        const int32_t accepted = int32_t(keyed({i, verdicts.size()}) * (planned.length + 1));
        verdicts.push_back({std::min(accepted + 1, planned.length), accepted, accepted + 1, false});
      }
      f.speculation->learn(verdicts, {.draftSeconds = 0.1, .verifySeconds = 1 + keyed({i})});
    }
    return all;
  };
  EXPECT_EQ(lengths(), lengths());
}

} // namespace
} // namespace dspark::llm
