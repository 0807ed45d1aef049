// Speculation in the engine: with deterministic drafts, right or wrong, outputs are those of plain decoding
// to the bit; with drawn drafts they are distributed alike.
#include "runtime/llm/speculation/LookupDrafter.h"
#include "runtime/llm/speculation/ModelDrafter.h"
#include "runtime/llm/speculation/SelfDrafter.h"
#include "test/serving/Serving.h"
#include <numeric>

using namespace dspark;
using namespace dspark::serving;

namespace {

// A step of n rows takes 1 + n / 100: drafts pay as soon as they have a chance.
llm::CostTable cheapDrafts() {
  std::vector<llm::CostPoint> points;
  for (int32_t sequences : {1, 16})
    for (int32_t drafts : {0, 64})
      points.push_back({sequences, drafts, 1 + 0.01 * (sequences + drafts)});
  return *llm::CostTable::create(points);
}

std::unique_ptr<llm::Speculation> speculate(std::unique_ptr<llm::Drafter> drafter,
                                            int32_t vocabulary = kVocabulary) {
  const llm::SpeculationOptions options{.lossShare = 1000}; // never parked: the worst drafter drafts on
  std::vector<llm::SpeculationSource> sources(1);
  if (!drafter->isFree())
    sources[0].cost = *llm::CostTable::create({{1, 1, 1e-4}, {1, 8, 1e-4}}, llm::CostTable::Kind::Drafter);
  sources[0].drafter = std::move(drafter);
  return std::move(*llm::Speculation::create(vocabulary, cheapDrafts(), std::move(sources), options));
}

// Time that goes on by one tick with every question: decisions that follow from it are the same in every run.
std::function<double()> ticks() {
  return [now = 0.0]() mutable { return now += 1e-3; };
}

// Knows what follows each text, or what certainly does not. Texts that are not in it get no draft.
class Oracle : public llm::Drafter {
public:
  enum class Kind { Right, Wrong, Sometimes };
  Oracle(Kind kind, std::map<std::vector<int32_t>, int32_t> next) : kind(kind), next(std::move(next)) {}

  std::string_view name() const override { return "oracle"; }
  int32_t longestDraft() const override { return 6; }
  bool isFree() const override { return true; }
  Status begin(llm::SequenceId sequence) override {
    EXPECT_TRUE(texts.try_emplace(sequence).second);
    return Status::ok();
  }
  Status append(llm::SequenceId sequence, std::span<const int32_t> tokens) override {
    texts.at(sequence).insert(texts.at(sequence).end(), tokens.begin(), tokens.end());
    return Status::ok();
  }
  Status truncate(llm::SequenceId sequence, int64_t length) override {
    texts.at(sequence).resize(size_t(length));
    return Status::ok();
  }
  void forget(llm::SequenceId sequence) override { texts.erase(sequence); }
  Status propose(std::span<const llm::DraftRequest> requests, std::span<llm::Draft> drafts) override {
    for (size_t i = 0; i < requests.size(); ++i) {
      std::vector<int32_t> text = texts.at(requests[i].sequence);
      for (int32_t j = 0; j < std::min(requests[i].limit, longestDraft()); ++j) {
        const auto found = next.find(text);
        if (found == next.end())
          break;
        const bool right = kind == Kind::Right || (kind == Kind::Sometimes && ++turn % 3 != 0);
        text.push_back(right ? found->second : (found->second + 1) % kVocabulary);
        drafts[i].tokens.push_back(text.back());
        if (!right)
          next.emplace(text, 0); // what follows a wrong token is as good a guess as any
      }
      drafts[i].match = 5;
    }
    return Status::ok();
  }

private:
  Kind kind;
  std::map<std::vector<int32_t>, int32_t> next;
  std::map<llm::SequenceId, std::vector<int32_t>> texts;
  int turn = 0;
};

const Workload &workload() {
  static const Workload workload(11, 40);
  return workload;
}

EngineStatistics expectExactOn(llm::HashModel &model, std::unique_ptr<llm::Speculation> speculation,
                               SchedulerOptions scheduling) {
  scheduling.sequences = 12;
  auto engine = std::move(*Engine::create(
      model, &testTokenizer(), {.scheduling = scheduling, .clock = ticks()}, std::move(speculation)));
  Listener listener;
  std::vector<RequestId> ids;
  for (size_t i = 0; i < workload().requests.size(); ++i) {
    ids.push_back(submit(*engine, listener.listen(workload().requests[i])));
    if (i % 3 == 0)
      engine->step();
  }
  finishAll(*engine);
  for (size_t i = 0; i < ids.size(); ++i)
    for (size_t choice = 0; choice < workload().expected[i].size(); ++choice)
      EXPECT_EQ(listener.of(ids[i], int32_t(choice)), workload().expected[i][choice])
          << "request " << i << ", choice " << choice;
  return engine->statistics();
}

EngineStatistics expectExact(std::unique_ptr<llm::Speculation> speculation, int64_t pages = 256,
                             SchedulerOptions scheduling = {}, int32_t failingToken = -1) {
  llm::HashModel model(testFacts(pages));
  model.failingToken = failingToken;
  return expectExactOn(model, std::move(speculation), scheduling);
}

TEST(Speculation, ADrafterThatIsAlwaysRightSavesSteps) {
  const int64_t plain = expectExact(nullptr).steps;
  const EngineStatistics found =
      expectExact(speculate(std::make_unique<Oracle>(Oracle::Kind::Right, workload().next)));
  EXPECT_GT(found.acceptedTokens, 100);
  // Rejected are only drafts for other choices of a prompt, and what follows a stop string.
  EXPECT_GT(found.acceptedTokens, found.draftedTokens * 2 / 3);
  EXPECT_LT(found.steps, plain * 4 / 5); // the longest request has other choices than the oracle's
}

TEST(Speculation, ADrafterThatIsAlwaysWrongChangesNothing) {
  const EngineStatistics found =
      expectExact(speculate(std::make_unique<Oracle>(Oracle::Kind::Wrong, workload().next)));
  EXPECT_GT(found.draftedTokens, 20);
  EXPECT_LT(found.acceptedTokens, found.draftedTokens / 5); // other choices may draw what was "wrong"
}

TEST(Speculation, DraftsInAnyScheduleAndMemory) {
  for (int64_t pages : {17, 24, 60})
    for (int64_t rows : {12, 20, 64})
      for (Preemption preemption : {Preemption::NewestFirst, Preemption::OldestFirst}) {
        const SchedulerOptions scheduling{.rowsPerStep = rows, .longestChunk = 9, .preemption = preemption};
        const EngineStatistics found = expectExact(
            speculate(std::make_unique<Oracle>(Oracle::Kind::Sometimes, workload().next)), pages, scheduling);
        EXPECT_GT(found.acceptedTokens, 0);
      }
}

// Layers of the model that say what it says and leave garbage in its pages, as layers between which others
// are missing do. HashModel refuses batches that write pages of two sequences.
class OwnLayers : public llm::ForwardModel {
public:
  explicit OwnLayers(llm::HashModel &model) : model(model) {}
  const llm::ModelFacts &facts() const override { return model.facts(); }
  StatusOr<std::span<const float>> forward(const llm::ForwardBatch &batch) override {
    auto logits = model.forward(batch);
    model.scribble(batch);
    return logits;
  }
  Status copyPage(int32_t, int32_t) override { return {Code::Internal, "drafts copy no pages"}; }

private:
  llm::HashModel &model;
};

// Takes the likeliest tokens at any temperature: deterministic drafts, with which outputs are equal to the
// bit.
class Likeliest : public llm::Drafter {
public:
  explicit Likeliest(std::unique_ptr<llm::Drafter> drafter) : drafter(std::move(drafter)) {}
  std::string_view name() const override { return drafter->name(); }
  int32_t longestDraft() const override { return drafter->longestDraft(); }
  bool isFree() const override { return drafter->isFree(); }
  bool writesTargetPages() const override { return drafter->writesTargetPages(); }
  Status begin(llm::SequenceId sequence) override { return drafter->begin(sequence); }
  Status append(llm::SequenceId sequence, std::span<const int32_t> tokens) override {
    return drafter->append(sequence, tokens);
  }
  Status truncate(llm::SequenceId sequence, int64_t length) override {
    return drafter->truncate(sequence, length);
  }
  void forget(llm::SequenceId sequence) override { drafter->forget(sequence); }
  Status propose(std::span<const llm::DraftRequest> requests, std::span<llm::Draft> drafts) override {
    std::vector<llm::DraftRequest> plain(requests.begin(), requests.end());
    for (llm::DraftRequest &request : plain)
      request.pipeline = nullptr;
    return drafter->propose(plain, drafts);
  }

private:
  std::unique_ptr<llm::Drafter> drafter;
};

TEST(Speculation, DraftsInTheModelsOwnPagesLeaveNothingBehind) {
  for (int64_t pages : {17, 24, 256})
    for (int64_t rows : {12, 64}) {
      llm::HashModel model(testFacts(pages));
      auto drafter =
          llm::SelfDrafter::create(std::make_unique<OwnLayers>(model), kVocabulary, {.longestDraft = 6});
      const EngineStatistics found =
          expectExactOn(model, speculate(std::make_unique<Likeliest>(std::move(*drafter))),
                        {.rowsPerStep = rows, .longestChunk = 9});
      EXPECT_GT(found.draftedTokens, 20);
      EXPECT_GT(found.acceptedTokens, 0);
    }
}

TEST(Speculation, LookupDraftsInTheText) {
  EXPECT_GT(expectExact(speculate(std::make_unique<llm::LookupDrafter>(llm::LookupOptions{.leastMatch = 1})))
                .draftedTokens,
            50);
}

// A model fails on a token that is drafted and never comes: the request must not fail with the draft.
TEST(Speculation, ADraftOnWhichTheModelFailsIsDropped) {
  std::map<std::vector<int32_t>, int32_t> next;
  for (const auto &[text, token] : workload().next)
    next[text] = kEnd - 1; // the drafter adds one
  const EngineStatistics found =
      expectExact(speculate(std::make_unique<Oracle>(Oracle::Kind::Wrong, next)), 256, {}, kEnd);
  EXPECT_EQ(found.failed, 0);
}

// Everything at once, a hundred times: little memory, drafts right and wrong, cancels in any state, rows on
// which the model fails or gives no numbers. Who was left alone has the output of plain decoding, and no page
// is left behind.
TEST(Speculation, SurvivesWhateverComesTogether) {
  int64_t preemptions = 0, accepted = 0, cancelled = 0, failed = 0;
  for (uint32_t seed = 0; seed < 100 && !HasFailure(); ++seed) {
    std::mt19937 random(seed);
    llm::HashModel model(testFacts(17 + random() % 50));
    model.failingToken = kEnd; // outputs end there: only prompts and drafts have it computed
    const SchedulerOptions scheduling{.rowsPerStep = int64_t(8 + random() % 57),
                                      .longestChunk = int64_t(1 + random() % 30),
                                      .sequences = int32_t(5 + random() % 4),
                                      .preemption =
                                          random() % 2 ? Preemption::NewestFirst : Preemption::OldestFirst};
    std::unique_ptr<llm::Drafter> drafter = std::make_unique<llm::LookupDrafter>();
    if (random() % 2)
      drafter = std::make_unique<Oracle>(Oracle::Kind::Sometimes, workload().next);
    auto engine = std::move(
        *Engine::create(model, &testTokenizer(),
                        {.scheduling = scheduling, .sharePrefixes = random() % 3 != 0, .clock = ticks()},
                        speculate(std::move(drafter))));
    Listener listener;
    std::map<RequestId, size_t> kept;
    std::vector<RequestId> doomed;
    for (int turn = 0; turn < 25; ++turn) {
      const size_t which = random() % workload().requests.size();
      kept[submit(*engine, listener.listen(workload().requests[which]))] = which;
      Request other = randomRequest(random);
      if (random() % 3 == 0)
        other.prompt.back() = kEnd;
      doomed.push_back(submit(*engine, listener.listen(other)));
      for (uint32_t steps = random() % 6; steps > 0; --steps) {
        engine->step();
        ASSERT_EQ(engine->checkPages().message(), "");
      }
      engine->cancel(doomed[random() % doomed.size()]);
    }
    finishAll(*engine);
    for (const auto &[id, which] : kept)
      for (size_t choice = 0; choice < workload().expected[which].size(); ++choice)
        ASSERT_EQ(listener.of(id, int32_t(choice)), workload().expected[which][choice]) << "seed " << seed;
    EXPECT_EQ(listener.ended, kept.size() + doomed.size());
    const EngineStatistics statistics = engine->statistics();
    preemptions += statistics.preemptions;
    accepted += statistics.acceptedTokens;
    cancelled += statistics.cancelled;
    failed += statistics.failed;
  }
  EXPECT_GT(preemptions, 100);
  EXPECT_GT(accepted, 1000);
  EXPECT_GT(cancelled, 500);
  EXPECT_GT(failed, 500);
}

// 10,000 small schedules: a handful of requests in little memory, drafts that are right, wrong or looked up,
// and cancels at any moment. No request is forgotten, and no page left behind.
TEST(Speculation, TenThousandSchedulesWithCancelsLeaveNoPageBehind) {
  int64_t accepted = 0, cancelled = 0, preemptions = 0;
  for (uint32_t seed = 0; seed < 10'000 && !HasFailure(); ++seed) {
    std::mt19937 random(seed);
    llm::HashModel model(testFacts(8 + random() % 24));
    const SchedulerOptions scheduling{.rowsPerStep = int64_t(4 + random() % 30),
                                      .longestChunk = int64_t(1 + random() % 20),
                                      .sequences = int32_t(1 + random() % 4),
                                      .preemption =
                                          random() % 2 ? Preemption::NewestFirst : Preemption::OldestFirst};
    std::unique_ptr<llm::Drafter> drafter = std::make_unique<llm::LookupDrafter>();
    if (random() % 2)
      drafter = std::make_unique<Oracle>(Oracle::Kind::Sometimes, workload().next);
    auto engine = std::move(
        *Engine::create(model, &testTokenizer(),
                        {.scheduling = scheduling, .sharePrefixes = random() % 3 != 0, .clock = ticks()},
                        speculate(std::move(drafter))));
    size_t ended = 0;
    std::vector<RequestId> ids;
    for (int turn = 0; turn < 5; ++turn) {
      Request request = workload().requests[random() % workload().requests.size()];
      request.receive = [&](const Output &output) { ended += output.statistics ? 1 : 0; };
      if (const auto id = engine->submit(std::move(request)); id.isOk()) // or it can never fit
        ids.push_back(*id);
      for (uint32_t steps = random() % 6; steps > 0; --steps) {
        engine->step();
        ASSERT_EQ(engine->checkPages().message(), "") << "seed " << seed;
      }
      if (!ids.empty() && random() % 2)
        engine->cancel(ids[random() % ids.size()]);
    }
    finishAll(*engine);
    EXPECT_EQ(ended, ids.size()) << "seed " << seed;
    const EngineStatistics statistics = engine->statistics();
    accepted += statistics.acceptedTokens;
    cancelled += statistics.cancelled;
    preemptions += statistics.preemptions;
  }
  EXPECT_GT(accepted, 1000);
  EXPECT_GT(cancelled, 5000);
  EXPECT_GT(preemptions, 1000);
}

// Draws its tokens from its own distributions, which differ from the model's.
class Drawing : public llm::Drafter {
public:
  std::string_view name() const override { return "drawing"; }
  int32_t longestDraft() const override { return 3; }
  bool isFree() const override { return false; }
  Status begin(llm::SequenceId) override { return Status::ok(); }
  Status append(llm::SequenceId, std::span<const int32_t>) override { return Status::ok(); }
  Status truncate(llm::SequenceId, int64_t) override { return Status::ok(); }
  void forget(llm::SequenceId) override {}
  Status propose(std::span<const llm::DraftRequest> requests, std::span<llm::Draft> drafts) override {
    for (size_t i = 0; i < requests.size(); ++i)
      for (int32_t j = 0; j < std::min(requests[i].limit, 3); ++j) {
        std::vector<float> logits(3, 0.f);
        logits[size_t(j % 3)] = 1;
        auto q = requests[i].pipeline->distribution(logits, drafts[i].tokens);
        if (!q.isOk())
          return q.status();
        drafts[i].tokens.push_back(requests[i].pipeline->draw(*q, drafts[i].tokens));
        drafts[i].drawnFrom.push_back(*q);
        drafts[i].confidence.push_back(0.7f);
      }
    return Status::ok();
  }
};

// Three tokens of output, 27 outcomes, penalties and top-p on: 20,000 requests side by side against the exact
// probabilities. Chi-square with 26 degrees of freedom exceeds 61 once in 10,000 seeds.
TEST(Speculation, DrawnDraftsKeepTheDistribution) {
  llm::ModelFacts facts = testFacts();
  facts.vocabulary = 3;
  llm::HashModel model(facts);
  model.spread = 2;
  Request request;
  request.prompt = {0, 1, 2, 2};
  request.maxTokens = 4; // the last is not counted: three drafts fit before it
  request.sampling.presencePenalty = 0.5f;
  request.sampling.topP = 0.95f;

  std::map<std::vector<int32_t>, double> expected;
  llm::SamplingPipeline pipeline;
  const std::function<void(std::vector<int32_t>, double)> enumerate = [&](std::vector<int32_t> output,
                                                                          double p) {
    if (output.size() == 3) {
      expected[output] = p;
      return;
    }
    llm::HashModel fresh(facts);
    fresh.spread = 2;
    std::vector<int32_t> tokens = request.prompt, table(8);
    tokens.insert(tokens.end(), output.begin(), output.end());
    std::iota(table.begin(), table.end(), 0);
    const int32_t length = int32_t(tokens.size()), offsets[] = {0, length}, row = length - 1;
    const auto logits = *fresh.forward({tokens, offsets, {&length, 1}, table, 8, {&row, 1}});
    llm::TokenCounts counts;
    counts.addPrompt(request.prompt);
    for (int32_t token : output)
      counts.push(token);
    llm::Distribution distribution;
    ASSERT_TRUE(pipeline.run(request.sampling, counts, logits, distribution).isOk());
    for (size_t i = 0; i < distribution.tokens.size(); ++i) {
      output.push_back(distribution.tokens[i]);
      enumerate(output, p * double(distribution.probabilities[i]));
      output.pop_back();
    }
  };
  enumerate({}, 1);

  auto engine = std::move(*Engine::create(
      model, nullptr, {.scheduling = {.sequences = 12}, .mostWaiting = 100'000, .clock = ticks()},
      speculate(std::make_unique<Drawing>(), /*vocabulary=*/3)));
  constexpr int kRequests = 20'000;
  std::map<std::vector<int32_t>, int> found;
  std::map<RequestId, std::vector<int32_t>> outputs;
  request.receive = [&](const Output &output) {
    auto &tokens = outputs[output.request];
    tokens.insert(tokens.end(), output.tokens.begin(), output.tokens.end());
    if (output.finish != FinishReason::None)
      ++found[{tokens.begin(), tokens.begin() + 3}];
  };
  for (int i = 0; i < kRequests; ++i) {
    request.sampling.seed = uint64_t(i);
    submit(*engine, request);
  }
  while (engine->step()) {
  }
  double chiSquare = 0;
  for (const auto &[output, p] : expected) {
    const double mean = p * kRequests;
    chiSquare += (found[output] - mean) * (found[output] - mean) / mean;
  }
  EXPECT_EQ(found.size(), expected.size());
  EXPECT_LT(chiSquare, 61);
  EXPECT_GT(engine->statistics().acceptedTokens, 1000);
  EXPECT_GT(engine->statistics().draftedTokens, engine->statistics().acceptedTokens * 11 / 10);
}

} // namespace
