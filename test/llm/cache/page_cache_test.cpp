#include "runtime/llm/cache/PageCache.h"
#include "test/llm/HashModel.h"
#include <gmock/gmock.h>
#include <list>
#include <map>
#include <numeric>

using namespace dspark;
using namespace dspark::llm;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

using Tokens = std::vector<int32_t>;

ModelFacts facts(int64_t pages) {
  return {
      .vocabulary = 50, .contextLength = 1000, .pageSize = 4, .pages = pages, .pageBytes = 64, .maxRows = 64};
}

Tokens text(int32_t count, int32_t first = 0) {
  Tokens tokens(static_cast<size_t>(count));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

// A sequence that has been computed up to the end of its tokens.
CachedSequence computed(PageCache &cache, const Tokens &tokens, std::string_view salt = {}) {
  CachedSequence sequence = cache.open(tokens, salt);
  const auto reserved = cache.reserve(sequence, int64_t(tokens.size()) - sequence.length());
  EXPECT_TRUE(reserved.isOk() && *reserved);
  cache.commit(sequence, tokens);
  return sequence;
}

Tokens pagesOf(const CachedSequence &sequence) { return {sequence.pages().begin(), sequence.pages().end()}; }

TEST(PageCache, SequencesWithTheSamePrefixShareItsFullPages) {
  HashModel model(facts(10));
  PageCache cache(model);
  const CachedSequence first = computed(cache, text(11));
  Tokens other = text(11);
  other[9] = 40;
  const CachedSequence second = computed(cache, other);
  EXPECT_EQ(second.pages()[0], first.pages()[0]);
  EXPECT_EQ(second.pages()[1], first.pages()[1]);
  EXPECT_NE(second.pages()[2], first.pages()[2]);
  EXPECT_EQ(cache.statistics().sharedTokens, 8);
  EXPECT_EQ(cache.availablePages(), 6);
  const CachedSequence *all[] = {&first, &second};
  EXPECT_EQ(cache.check(all).message(), "");
}

TEST(PageCache, TheLastTokenIsLeftToCompute) {
  HashModel model(facts(10));
  PageCache cache(model);
  const CachedSequence first = computed(cache, text(8));
  EXPECT_EQ(cache.open(text(8)).length(), 4);
  EXPECT_EQ(cache.open(text(9)).length(), 8);
  EXPECT_EQ(cache.open(text(4)).length(), 0);
}

// Two sequences that were computed side by side keep one copy of what they have in common.
TEST(PageCache, EqualPagesBecomeOne) {
  HashModel model(facts(10));
  PageCache cache(model);
  CachedSequence first = cache.open(text(6)), second = cache.open(text(6));
  ASSERT_TRUE(*cache.reserve(first, 6));
  ASSERT_TRUE(*cache.reserve(second, 6));
  EXPECT_EQ(cache.availablePages(), 6);
  cache.commit(first, text(6));
  cache.commit(second, text(6));
  EXPECT_EQ(second.pages()[0], first.pages()[0]);
  EXPECT_NE(second.pages()[1], first.pages()[1]);
  EXPECT_EQ(cache.availablePages(), 7);
}

TEST(PageCache, SaltSeparates) {
  HashModel model(facts(10));
  PageCache cache(model);
  const CachedSequence first = computed(cache, text(9), "alice");
  EXPECT_EQ(cache.open(text(9), "bob").length(), 0);
  EXPECT_EQ(cache.open(text(9)).length(), 0);
  EXPECT_EQ(cache.open(text(9), "alice").length(), 8);
}

// With a hash that always collides, only the comparison of parents and tokens tells texts apart.
TEST(PageCache, CollisionsLeakNothing) {
  HashModel model(facts(20));
  PageCache cache(model, {.hash = [](PageIndex::Node, std::string_view,
                                     std::span<const int32_t>) -> uint64_t { return 7; }});
  const CachedSequence first = computed(cache, text(12)), second = computed(cache, text(12, 20));
  Tokens mixed = text(4);
  const Tokens tail = text(8, 24); // the second's, behind the first's first page
  mixed.insert(mixed.end(), tail.begin(), tail.end());
  EXPECT_EQ(cache.open(mixed).length(), 4);
  EXPECT_EQ(cache.open(text(12)).length(), 8);
  EXPECT_EQ(cache.open(text(12, 20)).length(), 8);
  EXPECT_EQ(cache.open(text(12), "salt").length(), 0);
}

TEST(PageCache, AForkIsCopiedWhenOneOfBothWrites) {
  HashModel model(facts(10));
  PageCache cache(model);
  CachedSequence first = computed(cache, text(6)), second = cache.fork(first);
  EXPECT_EQ(pagesOf(first), pagesOf(second));
  EXPECT_EQ(cache.availablePages(), 8);
  ASSERT_TRUE(*cache.reserve(second, 1));
  EXPECT_EQ(second.pages()[0], first.pages()[0]);
  EXPECT_NE(second.pages()[1], first.pages()[1]);
  const int32_t kept = first.pages()[1];
  ASSERT_TRUE(*cache.reserve(first, 1)); // it owns the page alone by now
  EXPECT_EQ(first.pages()[1], kept);
  EXPECT_EQ(cache.statistics().copies, 1);
}

TEST(PageCache, RollbackByLengthGivesPagesBack) {
  HashModel model(facts(10));
  PageCache cache(model);
  CachedSequence sequence = computed(cache, text(6));
  ASSERT_TRUE(*cache.reserve(sequence, 9)); // drafts up to 15 tokens
  EXPECT_EQ(cache.availablePages(), 6);
  cache.commit(sequence, text(7)); // of which one stands
  EXPECT_EQ(sequence.length(), 7);
  EXPECT_EQ(cache.availablePages(), 8);
  cache.truncate(sequence, 2);
  EXPECT_EQ(cache.availablePages(), 9);
}

// Truncated into a published page, the sequence must not write what others may find there.
TEST(PageCache, APublishedPageIsNotWritten) {
  HashModel model(facts(10));
  PageCache cache(model);
  CachedSequence first = computed(cache, text(9)), second = cache.open(text(9));
  cache.truncate(first, 6);
  ASSERT_TRUE(*cache.reserve(first, 1));
  EXPECT_NE(first.pages()[1], second.pages()[1]);
  EXPECT_EQ(cache.open(text(9)).length(), 8);

  cache.truncate(second, 6); // the only owner: no copy, but the page is found no more
  const int32_t page = second.pages()[1];
  ASSERT_TRUE(*cache.reserve(second, 1));
  EXPECT_EQ(second.pages()[1], page);
  EXPECT_EQ(cache.open(text(9)).length(), 4);
}

TEST(PageCache, TheLeastRecentlyUsedTextIsEvictedFromItsEnd) {
  HashModel model(facts(6));
  PageCache cache(model);
  computed(cache, text(9));
  computed(cache, text(9, 20));
  EXPECT_EQ(cache.open(text(9, 20)).length(), 8);
  EXPECT_EQ(cache.open(text(9)).length(), 8); // now the later used
  EXPECT_EQ(cache.availablePages(), 6);
  const CachedSequence third = computed(cache, text(9, 40));
  EXPECT_EQ(cache.statistics().evictions, 1); // two were free
  EXPECT_EQ(cache.open(text(9)).length(), 8);
  EXPECT_EQ(cache.open(text(9, 20)).length(), 4);
}

TEST(PageCache, TooFewPagesChangeNothing) {
  HashModel model(facts(3));
  PageCache cache(model);
  CachedSequence first = computed(cache, text(6)), second = cache.fork(first);
  const Tokens before = pagesOf(second);
  const auto reserved = cache.reserve(second, 3); // one copy and one page more
  ASSERT_TRUE(reserved.isOk());
  EXPECT_FALSE(*reserved);
  EXPECT_EQ(pagesOf(second), before);
  EXPECT_EQ(cache.availablePages(), 1);
  EXPECT_TRUE(*cache.reserve(second, 2));
}

TEST(PageCache, AFailedCopyIsAnErrorAndLosesNoPage) {
  HashModel model(facts(5));
  PageCache cache(model);
  CachedSequence first = computed(cache, text(6)), second = cache.fork(first);
  model.failCopies = true;
  EXPECT_THAT(cache.reserve(second, 1).status().message(), HasSubstr("cannot be copied"));
  const CachedSequence *all[] = {&first, &second};
  EXPECT_EQ(cache.check(all).message(), "");
  EXPECT_EQ(cache.availablePages(), 3);
}

TEST(PageCache, WithoutSharingNothingIsFound) {
  HashModel model(facts(10));
  PageCache cache(model, {.sharePrefixes = false});
  computed(cache, text(9));
  EXPECT_EQ(cache.open(text(9)).length(), 0);
  EXPECT_EQ(cache.availablePages(), 10);
}

// A row sees 6 tokens, so at 9 tokens the next one sees those from 4 on.
TEST(PageCache, PagesBehindTheWindowAreGivenBack) {
  ModelFacts windowed = facts(10);
  windowed.window = 6;
  HashModel model(windowed);
  PageCache cache(model);
  Tokens tokens = text(8);
  CachedSequence sequence = computed(cache, tokens);
  EXPECT_EQ(cache.availablePages(), 8); // token 3 is still seen
  tokens.push_back(8);
  ASSERT_TRUE(*cache.reserve(sequence, 1));
  cache.commit(sequence, tokens);
  EXPECT_EQ(sequence.pages()[0], -1);
  EXPECT_EQ(cache.availablePages(), 8);
  CachedSequence other = cache.fork(sequence), same = cache.open(text(9));
  EXPECT_EQ(same.length(), 8); // published pages are found until they are evicted
  EXPECT_EQ(cache.check(std::vector<const CachedSequence *>{&sequence, &other, &same}).message(), "");
  cache.truncate(sequence, 9);
  EXPECT_EQ(sequence.length(), 9);
  cache.truncate(sequence, 8); // token 3 would be seen again
  EXPECT_EQ(sequence.length(), 0);
  other.release();
  same.release();
  EXPECT_EQ(cache.availablePages(), 10);
}

// A long text in a cache that could not hold it.
TEST(PageCache, ASequenceLongerThanTheCacheFitsBehindItsWindow) {
  ModelFacts windowed = facts(4);
  windowed.window = 9;
  HashModel model(windowed);
  PageCache cache(model);
  CachedSequence sequence = cache.open(text(1));
  for (int32_t length = 1; length <= 200; ++length) {
    StatusOr<bool> reserved = cache.reserve(sequence, 1);
    ASSERT_TRUE(reserved.isOk() && *reserved) << length;
    cache.commit(sequence, text(length));
  }
  EXPECT_EQ(sequence.length(), 200);
  sequence.release();
  EXPECT_EQ(cache.availablePages(), 4);
}

// 10,000 random schedules on 24 pages: open, grow, draft and roll back, fork, cancel. Texts use three tokens,
// so that prefixes are shared and pages published twice. After every action each page is free, cached or
// owned exactly as counted; and pages always hold what their sequences say, checked by contents kept beside
// them. Every third model has a window.
class Schedules {
public:
  explicit Schedules(uint32_t seed) : random(seed), model(factsOf(seed)), cache(model) {}

  void run(int actions) {
    for (int action = 0; action < actions && !testing::Test::HasFatalFailure(); ++action) {
      act();
      check();
    }
    sequences.clear();
    EXPECT_EQ(cache.availablePages(), 24);
  }

private:
  struct Sequence {
    CachedSequence pages;
    Tokens tokens; // computed ones
    std::string salt;
  };

  static ModelFacts factsOf(uint32_t seed) {
    ModelFacts made = facts(24);
    made.window = seed % 3 == 0 ? 1 + seed % 11 : 0;
    return made;
  }
  int below(int limit) { return int(random() % uint32_t(limit)); }
  Sequence &any() { return *std::next(sequences.begin(), below(int(sequences.size()))); }

  void act() {
    const int choice = sequences.empty() ? 0 : below(10);
    if (choice < 2)
      open();
    else if (choice == 2)
      fork(any());
    else if (choice == 3)
      sequences.erase(std::next(sequences.begin(), below(int(sequences.size())))); // finished or cancelled
    else if (choice == 4)
      truncate(any());
    else
      grow(any());
  }

  void open() {
    Sequence sequence;
    for (int i = 1 + below(20); i > 0; --i)
      sequence.tokens.push_back(below(3));
    sequence.salt = below(4) ? "" : "salt";
    sequence.pages = cache.open(sequence.tokens, sequence.salt);
    sequence.tokens.resize(size_t(sequence.pages.length()));
    sequences.push_back(std::move(sequence));
  }

  void fork(const Sequence &from) { sequences.push_back({cache.fork(from.pages), from.tokens, from.salt}); }

  void truncate(Sequence &sequence) {
    sequence.tokens.resize(size_t(below(int(sequence.tokens.size()) + 1)));
    cache.truncate(sequence.pages, int64_t(sequence.tokens.size()));
    sequence.tokens.resize(size_t(sequence.pages.length()));
  }

  void grow(Sequence &sequence) {
    const int drafted = 1 + below(9), stay = 1 + below(drafted);
    const auto reserved = cache.reserve(sequence.pages, drafted);
    ASSERT_TRUE(reserved.isOk());
    if (!*reserved)
      return;
    Tokens drafts = sequence.tokens;
    for (int i = 0; i < drafted; ++i) {
      const int64_t position = int64_t(drafts.size());
      drafts.push_back(below(3));
      content[{sequence.pages.pages()[size_t(position / 4)], position % 4}] = {sequence.salt, drafts};
    }
    sequence.tokens.assign(drafts.begin(), drafts.end() - (drafted - stay));
    cache.commit(sequence.pages, sequence.tokens);
  }

  void check() {
    std::vector<const CachedSequence *> all;
    for (const Sequence &sequence : sequences) {
      all.push_back(&sequence.pages);
      Tokens prefix;
      for (size_t i = 0; i < sequence.tokens.size(); ++i) {
        prefix.push_back(sequence.tokens[i]);
        if (sequence.pages.pages()[i / 4] < 0) {
          ASSERT_LE(int64_t(i) + model.facts().window,
                    int64_t(sequence.tokens.size())); // seen by none to come
          continue;
        }
        const auto &[salt, tokens] = content[{sequence.pages.pages()[i / 4], int64_t(i % 4)}];
        ASSERT_EQ(salt, sequence.salt);
        ASSERT_EQ(tokens, prefix);
      }
    }
    ASSERT_EQ(cache.check(all).message(), "");
  }

  // A page copied on write takes its contents along.
  class Model : public HashModel {
  public:
    explicit Model(ModelFacts facts) : HashModel(facts) {}
    std::function<void(int32_t, int32_t)> copied;
    Status copyPage(int32_t from, int32_t to) override {
      copied(from, to);
      return Status::ok();
    }
  };

  std::mt19937 random;
  std::map<std::pair<int32_t, int64_t>, std::pair<std::string, Tokens>>
      content; // of page and slot: all up to it
  Model model;
  PageCache cache;
  std::list<Sequence> sequences;

public:
  void connect() {
    model.copied = [this](int32_t from, int32_t to) {
      for (int64_t slot = 0; slot < 4; ++slot)
        content[{to, slot}] = content[{from, slot}];
    };
  }
};

TEST(PageCache, TenThousandRandomSchedulesLeaveNoPageBehind) {
  for (uint32_t seed = 0; seed < 10'000 && !HasFatalFailure(); ++seed) {
    Schedules schedules(seed);
    schedules.connect();
    schedules.run(30);
  }
}

} // namespace
