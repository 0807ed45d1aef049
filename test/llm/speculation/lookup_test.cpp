// Lookup: the automaton against brute force, the drafter's choices, the bounded store across requests.
#include "ToyDecoding.h"
#include "runtime/llm/speculation/LookupDrafter.h"
#include <ctime>
#include <gmock/gmock.h>

namespace dspark::llm {
namespace {
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using toy::keyed;
using toy::Tokens;

Tokens randomText(uint64_t seed, size_t length, int32_t alphabet) {
  Tokens text;
  for (size_t i = 0; i < length; ++i)
    text.push_back(int32_t(keyed({seed, i}) * alphabet));
  return text;
}

bool endsAt(const Tokens &text, size_t end, std::span<const int32_t> suffix) {
  return end >= suffix.size() &&
         std::equal(suffix.begin(), suffix.end(), text.begin() + long(end - suffix.size()));
}

/// Length of the longest suffix that ends earlier, and the latest such end.
std::pair<int32_t, size_t> bruteRepeated(const Tokens &text) {
  for (size_t length = text.size() - 1; length > 0; --length)
    for (size_t end = text.size() - 1; end >= length; --end)
      if (endsAt(text, end, std::span(text).last(length)))
        return {int32_t(length), end};
  return {0, 0};
}

TEST(SuffixAutomaton, findsTheLongestRepeatedSuffixAndWhatFollowedItLast) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const Tokens text = randomText(seed, 60, 2 + int32_t(seed % 4));
    SuffixAutomaton automaton;
    for (size_t i = 0; i < text.size(); ++i) {
      automaton.append(text[i]);
      const Tokens now(text.begin(), text.begin() + long(i) + 1);
      const auto [length, end] = bruteRepeated(now);
      const SuffixAutomaton::Match match = automaton.repeated();
      ASSERT_EQ(match.length, length);
      Tokens expected(now.begin() + long(end), now.end()), found;
      expected.resize(std::min<size_t>(expected.size(), 3));
      automaton.latestContinuation(match, int32_t(expected.size()), found);
      if (length > 0)
        ASSERT_EQ(found, expected) << seed << " " << i;
    }
  }
}

TEST(SuffixAutomaton, followsAnotherTextWhileItGrows) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Tokens text = randomText(seed, 80, 3), other = randomText(seed + 100, 80, 3);
    SuffixAutomaton automaton;
    SuffixAutomaton::Match match;
    for (size_t i = 0; i < other.size(); ++i) {
      automaton.append(text[i]); // after the first steps the match must survive splits of its state
      match = automaton.extended(match, other[i]);
      const Tokens known(text.begin(), text.begin() + long(i) + 1);
      // The longest suffix of (match + token) that occurs: never longer than one more than before, and where
      // the text has not grown by what the other needs, the brute answer.
      int32_t longest = 0;
      for (size_t length = 1; length <= size_t(match.length) + 1 && length <= i + 1; ++length)
        for (size_t end = length; end <= known.size(); ++end)
          if (endsAt(known, end, std::span(other).first(i + 1).last(length)))
            longest = int32_t(length);
      ASSERT_LE(match.length, longest);
      if (match.length > 0) {
        bool occurs = false;
        for (size_t end = 1; end <= known.size(); ++end)
          occurs |= endsAt(known, end, std::span(other).first(i + 1).last(size_t(match.length)));
        ASSERT_TRUE(occurs);
      }
    }
  }
}

TEST(SuffixAutomaton, takesLinearTimeOnTheTextsThatAreWorst) {
  // One token for ever, a period, and random text of two tokens: 100 times the text takes 100 times as long,
  // and more where it leaves the caches; a quadratic automaton would take 10,000 times.
  const auto cpuSecondsFor = [](size_t length, auto tokenAt) {
    const clock_t start = clock();
    SuffixAutomaton automaton;
    for (size_t i = 0; i < length; ++i)
      automaton.append(tokenAt(i));
    return double(clock() - start) / CLOCKS_PER_SEC;
  };
  const std::function<int32_t(size_t)> texts[] = {[](size_t) { return 7; },
                                                  [](size_t i) { return int32_t(i % 1000); },
                                                  [](size_t i) { return int32_t(2 * keyed({i})); }};
  for (const auto &text : texts)
    EXPECT_LT(cpuSecondsFor(200000, text), 1000 * std::max(cpuSecondsFor(2000, text), 1e-3));
}

Draft propose(LookupDrafter &drafter, SequenceId sequence, int32_t limit) {
  Draft draft;
  const DraftRequest request{sequence, limit, nullptr};
  EXPECT_TRUE(drafter.propose({&request, 1}, {&draft, 1}).isOk());
  return draft;
}

Draft lookedUp(Tokens text, LookupOptions options = {}, int32_t limit = 8) {
  LookupDrafter drafter(options);
  EXPECT_TRUE(drafter.begin(1).isOk());
  EXPECT_TRUE(drafter.append(1, text).isOk());
  return propose(drafter, 1, limit);
}

TEST(LookupDrafter, draftsWhatFollowedTheLongestMatch) {
  const Draft draft = lookedUp({5, 6, 7, 8, 9, 1, 7, 3, 5, 6, 7}, {}, 4);
  EXPECT_THAT(draft.tokens, ElementsAre(8, 9, 1, 7));
  EXPECT_EQ(draft.match, 3);
  EXPECT_TRUE(draft.isDeterministic());
  EXPECT_TRUE(draft.confidence.empty());
  EXPECT_THAT(lookedUp({1, 2, 3, 4}).tokens, IsEmpty());
  EXPECT_THAT(lookedUp({1, 2, 3, 1}).tokens, IsEmpty()) << "a match of 1 is below the least";
  EXPECT_THAT(lookedUp({1, 2, 3, 1}, {.leastMatch = 1}, 2).tokens, ElementsAre(2, 3));
}

TEST(LookupDrafter, continuesAPeriodIntoItself) {
  EXPECT_THAT(lookedUp({1, 2, 3, 1, 2, 3, 1}, {}, 7).tokens, ElementsAre(2, 3, 1, 2, 3, 1, 2));
  EXPECT_THAT(lookedUp({4, 4, 4}, {}, 3).tokens, ElementsAre(4, 4, 4));
}

TEST(LookupDrafter, latestAndLikeliestContinuationsDiffer) {
  const Tokens text = {1, 2, 5, 0, 1, 2, 5, 9, 1, 2, 7, 1, 2};
  EXPECT_EQ(lookedUp(text, {}, 1).tokens, Tokens{7});
  EXPECT_EQ(lookedUp(text, {.continuation = LookupOptions::Continuation::Likeliest}, 1).tokens, Tokens{5});
}

TEST(LookupDrafter, sharesFinishedRequestsWithinItsCapacity) {
  LookupDrafter drafter({.sharedTokens = 64});
  const Tokens first = {10, 11, 12, 13, 14};
  EXPECT_TRUE(drafter.begin(1).isOk() && drafter.append(1, first).isOk());
  EXPECT_TRUE(drafter.begin(2).isOk() && drafter.append(2, Tokens{10, 11}).isOk());
  EXPECT_THAT(propose(drafter, 2, 4).tokens, IsEmpty()) << "the first has not finished";
  drafter.forget(1);
  EXPECT_TRUE(drafter.append(2, Tokens{10, 11, 12}).isOk());
  EXPECT_THAT(propose(drafter, 2, 4).tokens, ElementsAre(13, 14)) << "and no further than its end";
  for (SequenceId id = 3; id < 40; ++id) { // two generations of 32 tokens later it is gone
    EXPECT_TRUE(drafter.begin(id).isOk() && drafter.append(id, Tokens{int32_t(id), 99, 98}).isOk());
    drafter.forget(id);
  }
  EXPECT_TRUE(drafter.append(2, Tokens{0, 10, 11, 12}).isOk());
  EXPECT_EQ(propose(drafter, 2, 1).tokens, Tokens{0}) << "its own text";
  EXPECT_TRUE(drafter.append(2, Tokens{38, 99}).isOk());
  EXPECT_EQ(propose(drafter, 2, 1).tokens, Tokens{98});
}

TEST(LookupDrafter, truncatesAndReportsUnknownSequences) {
  LookupDrafter drafter;
  EXPECT_TRUE(drafter.begin(1).isOk() && drafter.append(1, Tokens{1, 2, 3, 1, 2, 9}).isOk());
  EXPECT_TRUE(drafter.truncate(1, 5).isOk());
  EXPECT_EQ(propose(drafter, 1, 1).tokens, Tokens{3});
  EXPECT_THAT(drafter.truncate(1, 6).message(), HasSubstr("has 5 tokens, not 6"));
  EXPECT_THAT(drafter.begin(1).message(), HasSubstr("begun before"));
  EXPECT_THAT(drafter.append(2, Tokens{1}).message(), HasSubstr("was not begun"));
  drafter.forget(2);
}

} // namespace
} // namespace dspark::llm
