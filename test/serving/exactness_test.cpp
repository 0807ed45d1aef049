// A request's output is a function of the request: it is compared with decoding in its plainest form under
// schedules of every kind. HashModel's logits depend on every bit of the pages, so a wrong page would show.
#include "test/serving/Serving.h"

using namespace dspark;
using namespace dspark::serving;

namespace {

const Workload &workload() {
  static const Workload workload(1, 40);
  return workload;
}

// Submits the requests, some at once and some between steps, and compares each choice with plain decoding.
EngineStatistics expectExact(llm::ForwardModel &model, const EngineOptions &options, uint32_t seed) {
  std::mt19937 random(seed);
  const auto engine = makeEngine(model, options);
  Listener listener;
  std::vector<RequestId> ids;
  for (const Request &request : workload().requests) {
    ids.push_back(submit(*engine, listener.listen(request)));
    for (uint32_t steps = random() % 4; steps > 0; --steps)
      engine->step();
  }
  finishAll(*engine);
  for (size_t i = 0; i < ids.size(); ++i)
    for (size_t choice = 0; choice < workload().expected[i].size(); ++choice)
      EXPECT_EQ(listener.of(ids[i], int32_t(choice)), workload().expected[i][choice])
          << "request " << i << ", choice " << choice;
  EXPECT_EQ(listener.ended, ids.size());
  EXPECT_EQ(engine->statistics().finished, int64_t(ids.size()));
  return engine->statistics();
}

TEST(Exactness, WorkloadsHaveEveryKindOfEnd) {
  int stops = 0, lengths = 0;
  for (const auto &choices : workload().expected)
    for (const Told &told : choices)
      (told.finish == FinishReason::Stop ? stops : lengths)++;
  EXPECT_GT(stops, 10);
  EXPECT_GT(lengths, 10);
}

TEST(Exactness, OneAfterTheOtherAndSideBySide) {
  for (int32_t sequences : {4, 5, 30}) { // four choices need four places
    llm::HashModel model(testFacts());
    EngineOptions options;
    options.scheduling.sequences = sequences;
    expectExact(model, options, 2);
  }
}

TEST(Exactness, PromptsInChunksOfAnySize) {
  for (int64_t chunk : {1, 2, 3, 7, 64})
    for (int64_t rows : {16, 23, 64}) {
      llm::HashModel model(testFacts());
      EngineOptions options;
      options.scheduling.longestChunk = chunk;
      options.scheduling.rowsPerStep = rows;
      expectExact(model, options, 3);
    }
}

TEST(Exactness, CacheHitsAndMisses) {
  for (bool share : {false, true}) {
    llm::HashModel model(testFacts());
    EngineOptions options;
    options.sharePrefixes = share;
    const EngineStatistics found = expectExact(model, options, 4);
    EXPECT_EQ(found.cachedTokens > 0, share);
  }
}

// The longest sequence has 64 tokens: 16 pages hold it, and little else.
TEST(Exactness, PreemptionWithBothPolicies) {
  for (Preemption preemption : {Preemption::NewestFirst, Preemption::OldestFirst})
    for (int64_t pages : {17, 24, 40})
      for (bool share : {false, true}) {
        llm::HashModel model(testFacts(pages));
        EngineOptions options;
        options.scheduling.preemption = preemption;
        options.sharePrefixes = share;
        EXPECT_GT(expectExact(model, options, 5).preemptions, 3);
      }
}

// Random cancels and failing requests among the others, in little memory.
TEST(Exactness, NeighboursThatAreCancelledOrFail) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    llm::HashModel model(testFacts(20 + random() % 40));
    model.failingToken = kVocabulary - 1; // no prompt has it, and outputs stop there
    EngineOptions options;
    options.scheduling.longestChunk = 1 + random() % 20;
    const auto engine = makeEngine(model, options);
    Listener listener;
    std::vector<RequestId> ids, doomed;
    for (const Request &request : workload().requests) {
      ids.push_back(submit(*engine, listener.listen(request)));
      Request other = randomRequest(random);
      other.sampling.logitBias = {{kEnd, -100.f}};
      if (random() % 2)
        other.prompt.back() = model.failingToken;
      doomed.push_back(submit(*engine, listener.listen(other)));
      for (uint32_t steps = random() % 4; steps > 0; --steps)
        engine->step();
      engine->cancel(doomed[random() % doomed.size()]);
    }
    finishAll(*engine);
    for (size_t i = 0; i < ids.size(); ++i)
      for (size_t choice = 0; choice < workload().expected[i].size(); ++choice)
        ASSERT_EQ(listener.of(ids[i], int32_t(choice)), workload().expected[i][choice]);
    EXPECT_GT(engine->statistics().failed, 5);
    EXPECT_GT(engine->statistics().cancelled, 5);
    EXPECT_EQ(listener.ended, ids.size() + doomed.size());
  }
}

} // namespace
