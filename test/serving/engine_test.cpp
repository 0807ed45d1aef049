#include "test/serving/Serving.h"
#include <thread>

using namespace dspark;
using namespace dspark::serving;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

Request promptOf(int32_t tokens, int64_t maxTokens = 8, int32_t first = 0) {
  Request request;
  for (int32_t i = 0; i < tokens; ++i)
    request.prompt.push_back((first + i * 5) % kEnd);
  request.maxTokens = maxTokens;
  request.sampling.temperature = 0;
  request.ignoreTokenizerStops = true;
  return request;
}

std::string refusal(Engine &engine, const Request &request) {
  return engine.submit(request).status().message();
}

TEST(Admission, WhatCanNeverBeServedIsRefusedAtOnce) {
  llm::HashModel model(testFacts(10)); // 40 tokens
  const auto engine = makeEngine(model);
  EXPECT_EQ(refusal(*engine, promptOf(0)), "the prompt has no tokens, it must have at least 1");
  EXPECT_EQ(refusal(*engine, promptOf(200)),
            "the prompt has 200 tokens, the model's context is 200 with at least 1 of output");
  EXPECT_EQ(refusal(*engine, promptOf(41)), "the prompt has 41 tokens, the whole cache holds 40");
  Request request = promptOf(3);
  request.prompt[2] = kVocabulary;
  EXPECT_EQ(refusal(*engine, request), "prompt token 2 is 24, but the vocabulary has 24 tokens");
  request = promptOf(3);
  request.stopTokens = {-1};
  EXPECT_EQ(refusal(*engine, request), "stop token 0 is -1, but the vocabulary has 24 tokens");
  request = promptOf(3);
  request.choices = 17;
  EXPECT_EQ(refusal(*engine, request), "the number of choices is 17, it must be at least 1 and at most 16");
  EXPECT_THAT(refusal(*engine, promptOf(3, 0)),
              HasSubstr("the number of output tokens is 0, it must be at least 1"));
  request = promptOf(3);
  request.topLogprobs = 21;
  EXPECT_EQ(refusal(*engine, request),
            "the number of top log probabilities is 21, it must be at least 0 and at most 20");
  request = promptOf(3);
  request.stopStrings = {"a", ""};
  EXPECT_EQ(refusal(*engine, request),
            "the length of a stop string in bytes is 0, it must be at least 1 and at most 1024");
  request.stopStrings.assign(33, "a");
  EXPECT_EQ(refusal(*engine, request),
            "the number of stop strings is 33, it must be at least 0 and at most 32");
  request = promptOf(3);
  request.sampling.topP = 0;
  EXPECT_EQ(refusal(*engine, request), "top-p is 0, it must be above 0 and at most 1");
  EXPECT_FALSE(engine->step());

  const auto textless = Engine::create(model, nullptr, {.scheduling = {.sequences = 4}});
  request = promptOf(3);
  request.stopStrings = {"a"};
  EXPECT_EQ(refusal(**textless, request), "stop strings need a tokenizer, and the engine has none");
}

TEST(Admission, ImpossibleOptionsAreRefused) {
  llm::HashModel model(testFacts());
  EXPECT_EQ(Engine::create(model, nullptr, {.scheduling = {.sequences = 65}}).status().message(),
            "each of 65 sequences needs a row, a step has 64");
  EXPECT_EQ(Engine::create(model, nullptr, {.scheduling = {.longestChunk = 0}}).status().message(),
            "sequences, rows per step and the longest chunk must be at least 1");
  llm::ModelFacts small = testFacts();
  small.vocabulary = 20;
  llm::HashModel other(small);
  EXPECT_EQ(Engine::create(other, &testTokenizer(), {.scheduling = {.sequences = 4}}).status().message(),
            "the tokenizer has 24 tokens, the model 20");
}

TEST(Admission, TooManyThatWaitAreBusy) {
  llm::HashModel model(testFacts());
  const auto engine = makeEngine(model, {.scheduling = {.sequences = 1}, .mostWaiting = 2});
  const RequestId first = submit(*engine, promptOf(3));
  submit(*engine, promptOf(3));
  EXPECT_EQ(engine->submit(promptOf(3)).status().code(), Code::Busy);
  EXPECT_EQ(refusal(*engine, promptOf(3)), "2 requests wait, at most 2 may");
  engine->step(); // the first has begun
  submit(*engine, promptOf(3));
  EXPECT_EQ(refusal(*engine, promptOf(3)), "2 requests wait, at most 2 may");
  engine->cancel(first);
  finishAll(*engine);
  submit(*engine, promptOf(3));
}

// Outputs end where the context does, or the whole cache: its last token needs no place.
TEST(Engine, OutputsEndWhereContextOrCacheDo) {
  Listener listener;
  for (auto [pages, expected] : {std::pair<int64_t, size_t>{256, 190}, {20, 71}}) {
    llm::HashModel model(testFacts(pages));
    const auto engine = makeEngine(model);
    const RequestId id = submit(*engine, listener.listen(promptOf(10, 1'000'000)));
    finishAll(*engine);
    const Told &told = listener.of(id);
    EXPECT_EQ(told.tokens.size(), expected);
    EXPECT_EQ(told.finish, FinishReason::Length);
    listener = {};
  }
}

TEST(Engine, DecodingGoesOnBesideALongPrompt) {
  llm::HashModel model(testFacts());
  const auto engine = makeEngine(model, {.scheduling = {.rowsPerStep = 16, .longestChunk = 8}});
  Listener listener;
  const RequestId first = submit(*engine, listener.listen(promptOf(4, 30)));
  engine->step();
  const RequestId second = submit(*engine, listener.listen(promptOf(60, 1, 3)));
  for (size_t step = 0; step < 8; ++step) {
    EXPECT_EQ(listener.of(first).tokens.size(), 1 + step);
    EXPECT_TRUE(listener.of(second).tokens.empty());
    engine->step();
  }
  EXPECT_EQ(listener.of(second).tokens.size(), 1u);
}

TEST(Engine, ChoicesShareThePrompt) {
  llm::HashModel model(testFacts());
  const auto engine = makeEngine(model);
  Request request = promptOf(22, 6);
  request.choices = 4;
  request.sampling.temperature = 1;
  Listener listener;
  const RequestId id = submit(*engine, listener.listen(request));
  engine->step();
  EXPECT_EQ(model.rows, 22);
  EXPECT_EQ(engine->statistics().availablePages, 256 - 6);
  engine->step(); // the partial page is copied for all but the last
  EXPECT_EQ(engine->statistics().availablePages, 256 - 5 - 4);
  finishAll(*engine);
  EXPECT_NE(listener.of(id, 0).tokens, listener.of(id, 1).tokens);
  for (int32_t choice = 0; choice < 4; ++choice)
    EXPECT_EQ(listener.of(id, choice), plainDecoding(request, choice));
}

TEST(Engine, CachedPromptsAreNotComputedAgain) {
  llm::HashModel model(testFacts());
  const auto engine = makeEngine(model);
  Listener listener;
  const RequestId first = submit(*engine, listener.listen(promptOf(50, 4)));
  finishAll(*engine);
  const int64_t before = model.rows;
  const RequestId second = submit(*engine, listener.listen(promptOf(50, 4)));
  finishAll(*engine);
  EXPECT_EQ(model.rows - before, 2 + 3); // 12 pages of 4 are there
  EXPECT_EQ(listener.of(second).tokens, listener.of(first).tokens);
  EXPECT_EQ(listener.of(second).statistics.cachedTokens, 48);
  EXPECT_EQ(engine->statistics().cachedTokens, 48);
}

// The next turn of a conversation finds the pages of the answer, too.
TEST(Engine, AnswersAreCachedForTheNextTurn) {
  llm::HashModel model(testFacts());
  const auto engine = makeEngine(model);
  Listener listener;
  Request request = promptOf(10, 14);
  const RequestId first = submit(*engine, listener.listen(request));
  finishAll(*engine);
  const auto &answer = listener.of(first).tokens;
  request.prompt.insert(request.prompt.end(), answer.begin(), answer.end());
  request.prompt.push_back(4);
  const RequestId second = submit(*engine, listener.listen(request));
  finishAll(*engine);
  EXPECT_EQ(listener.of(second).statistics.cachedTokens, 20); // 23 were computed
}

TEST(Engine, ANewcomerOfHigherPriorityTakesThePlaceOfALower) {
  llm::HashModel model(testFacts());
  const auto engine = makeEngine(model, {.scheduling = {.sequences = 1}});
  Listener listener;
  const Request low = promptOf(6, 20), lower = promptOf(6, 20, 1);
  Request high = promptOf(7, 3, 2);
  high.priority = 1;
  const RequestId first = submit(*engine, listener.listen(low));
  engine->step();
  const RequestId second = submit(*engine, listener.listen(lower)),
                  third = submit(*engine, listener.listen(high));
  for (int step = 0; step < 4; ++step)
    engine->step();
  EXPECT_EQ(listener.of(third).finish, FinishReason::Length);
  EXPECT_EQ(listener.of(second).tokens.size(), 0u); // it came later than the first
  finishAll(*engine);
  EXPECT_EQ(listener.of(first), plainDecoding(low, 0));
  EXPECT_EQ(listener.of(first).statistics.preemptions, 1);
  EXPECT_EQ(listener.of(second), plainDecoding(lower, 0));
}

// With newest first the oldest of several that outgrow the memory is never held up.
TEST(Engine, PreemptionFollowsItsPolicy) {
  for (Preemption preemption : {Preemption::NewestFirst, Preemption::OldestFirst}) {
    llm::HashModel model(testFacts(24));
    const auto engine = makeEngine(model, {.scheduling = {.preemption = preemption}});
    Listener listener;
    std::vector<RequestId> ids;
    for (int32_t i = 0; i < 4; ++i)
      ids.push_back(submit(*engine, listener.listen(promptOf(20, 60, i))));
    finishAll(*engine);
    const auto preemptions = [&](size_t i) { return listener.of(ids[i]).statistics.preemptions; };
    EXPECT_EQ(preemptions(0) > 0, preemption == Preemption::OldestFirst);
    EXPECT_GT(preemptions(0) + preemptions(1) + preemptions(2) + preemptions(3), 0);
  }
}

TEST(Engine, CancelWorksInAnyState) {
  llm::HashModel model(testFacts());
  const auto engine = makeEngine(model, {.scheduling = {.longestChunk = 8, .sequences = 3}});
  Listener listener;
  Request several = promptOf(30, 20, 3);
  several.choices = 2;
  const RequestId decoding = submit(*engine, listener.listen(promptOf(4, 20)));
  const RequestId prefilling = submit(*engine, listener.listen(several));
  const RequestId waiting = submit(*engine, listener.listen(promptOf(5, 20, 2)));
  const RequestId unseen = submit(*engine, listener.listen(promptOf(5, 20, 4)));
  engine->cancel(unseen); // before any step
  engine->step();
  engine->step();
  engine->cancel(12345); // never was
  for (RequestId id : {decoding, prefilling, waiting, waiting, unseen})
    engine->cancel(id);
  EXPECT_TRUE(engine->step());
  EXPECT_EQ(engine->checkPages().message(), "");
  EXPECT_EQ(listener.of(decoding).tokens.size(), 2u);
  for (RequestId id : {decoding, prefilling, waiting, unseen})
    EXPECT_EQ(listener.of(id).finish, FinishReason::Cancelled);
  EXPECT_EQ(listener.of(prefilling, 1).finish, FinishReason::Cancelled);
  EXPECT_EQ(listener.ended, 4u);
  EXPECT_FALSE(engine->step());
  engine->cancel(decoding);
  EXPECT_FALSE(engine->step());
  finishAll(*engine);
}

// Forward fails on token 22, a row of logits is NaN after token 21: only the requests that have them fail.
TEST(Engine, AFailureIsOneRequestsOwn) {
  llm::HashModel model(testFacts());
  model.failingToken = 22;
  model.nanToken = 21;
  const auto engine = makeEngine(model);
  Listener listener;
  std::vector<Request> requests;
  for (int32_t i = 0; i < 6; ++i) {
    requests.push_back(promptOf(9, 12, i));
    requests.back().sampling.logitBias = {{21, -100.f}, {22, -100.f}};
    for (int32_t &token : requests.back().prompt)
      token %= 20;
  }
  requests[2].prompt.back() = 22;
  requests[4].prompt.back() = 21;
  requests[4].choices = 3;
  std::vector<RequestId> ids;
  for (const Request &request : requests)
    ids.push_back(submit(*engine, listener.listen(request)));
  finishAll(*engine);
  EXPECT_EQ(listener.of(ids[2]).error, "the model cannot compute token 22");
  for (int32_t choice = 0; choice < 3; ++choice)
    EXPECT_EQ(listener.of(ids[4], choice).error, "the model's logit of token 23 is not a number");
  for (size_t i : {0, 1, 3, 5})
    EXPECT_EQ(listener.of(ids[i]), plainDecoding(requests[i], 0));
  EXPECT_EQ(engine->statistics().failed, 2);
  EXPECT_EQ(engine->statistics().finished, 4);
}

TEST(Engine, AFailedCopyOfAPageIsOneRequestsOwn) {
  llm::HashModel model(testFacts());
  const auto engine = makeEngine(model);
  Listener listener;
  Request several = promptOf(10, 12, 3);
  several.choices = 3;
  const RequestId first = submit(*engine, listener.listen(promptOf(9, 12)));
  const RequestId second = submit(*engine, listener.listen(several));
  engine->step();
  model.failCopies = true;
  finishAll(*engine);
  EXPECT_EQ(listener.of(first), plainDecoding(promptOf(9, 12), 0));
  for (int32_t choice = 0; choice < 3; ++choice)
    EXPECT_EQ(listener.of(second, choice).error, "the page cannot be copied");
}

TEST(Engine, TopLogprobsComeWithTheTokens) {
  llm::HashModel model(testFacts());
  const auto engine = makeEngine(model);
  Request request = promptOf(5, 3);
  request.logprobs = llm::LogprobMode::Raw;
  request.topLogprobs = 2;
  size_t seen = 0;
  request.receive = [&](const Output &output) {
    ASSERT_EQ(output.logprobs.size(), output.tokens.size());
    for (const llm::Logprobs &logprobs : output.logprobs) {
      ASSERT_EQ(logprobs.top.size(), 2u);
      EXPECT_EQ(logprobs.top[0].token, output.tokens[0]); // greedy
      EXPECT_EQ(logprobs.top[0].logprob, logprobs.chosen.logprob);
      EXPECT_GE(logprobs.top[0].logprob, logprobs.top[1].logprob);
      ++seen;
    }
  };
  submit(*engine, request);
  finishAll(*engine);
  EXPECT_EQ(seen, 3u);
}

TEST(Engine, StatisticsAddUp) {
  llm::HashModel model(testFacts());
  double now = 100;
  EngineOptions options;
  options.clock = [&] { return now += 0.25; };
  const auto engine = makeEngine(model, options);
  Listener listener;
  const RequestId id = submit(*engine, listener.listen(promptOf(9, 5)));
  finishAll(*engine);
  const RequestStatistics one = listener.of(id).statistics;
  EXPECT_EQ(one.promptTokens, 9);
  EXPECT_EQ(one.outputTokens, 5);
  EXPECT_GT(one.queueSeconds, 0);
  EXPECT_GT(one.firstTokenSeconds, one.queueSeconds);
  EXPECT_GT(one.totalSeconds, one.firstTokenSeconds);
  const EngineStatistics all = engine->statistics();
  EXPECT_EQ(all.steps, 5);
  EXPECT_EQ(all.prefillTokens, 9);
  EXPECT_EQ(all.outputTokens, 5);
  EXPECT_EQ(all.prefillSeconds, 0.25);
  EXPECT_EQ(all.decodeSeconds, 1);
}

// Requests and cancels from three threads while another steps; callbacks submit and cancel, too.
TEST(Engine, SubmitAndCancelComeFromAnyThread) {
  llm::HashModel model(testFacts(60));
  const auto engine = makeEngine(model, {.mostWaiting = 10'000});
  std::atomic<int> ends{0}, followUps{0}, sent{0};
  const auto receive = [&](const Output &output) {
    if (output.statistics && ++ends % 5 == 0 && followUps < 20) {
      ++followUps;
      Request next = promptOf(3, 2);
      next.receive = [&](const Output &last) { ends += last.statistics ? 1 : 0; };
      engine->cancel(submit(*engine, next) - 1);
    }
  };
  std::atomic<bool> stop{false};
  std::thread stepping([&] {
    while (!stop)
      if (!engine->step())
        engine->wait(std::chrono::milliseconds(5));
  });
  std::vector<std::thread> callers;
  for (int32_t caller = 0; caller < 3; ++caller)
    callers.emplace_back([&, caller] {
      for (int32_t i = 0; i < 100; ++i) {
        Request request = promptOf(1 + (i * 7 + caller) % 30, 1 + i % 9, i % 6);
        request.receive = receive;
        const RequestId id = submit(*engine, request);
        ++sent;
        if (i % 3 == 0)
          engine->cancel(id);
        (void)engine->statistics();
      }
    });
  for (std::thread &caller : callers)
    caller.join();
  while (ends < sent + followUps)
    std::this_thread::yield();
  stop = true;
  stepping.join();
  finishAll(*engine);
  EXPECT_EQ(engine->statistics().requests, sent + followUps);
}

} // namespace
