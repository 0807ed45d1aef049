// What the engine's tests share: a small vocabulary, requests of every kind, and decoding in its plainest
// form, one sequence, one row at a time, which every schedule of the engine must reproduce.
#pragma once
#include "runtime/llm/sampling/Pipeline.h"
#include "runtime/serving/Engine.h"
#include "test/llm/HashModel.h"
#include <gmock/gmock.h>
#include <map>

namespace dspark::serving {

inline constexpr int32_t kVocabulary = 24, kEnd = 23;

/// Letters, pieces of words, a space, the four bytes of an emoji as tokens of their own, and an end.
inline const llm::Tokenizer &testTokenizer() {
  static const auto tokenizer = [] {
    llm::TokenizerSpec spec;
    spec.byteLevel = true;
    for (const char *text : {"a", "b", "c", "d",    "e",    "ab",   "bc",   "cd",   " ",    "\n", "the", " a",
                             "x", "y", "z", "\xC3", "\xA9", "\xF0", "\x9F", "\x98", "\x80", ".",  "!"})
      spec.tokens.push_back({.text = text});
    spec.tokens.push_back({.text = "<end>", .kind = llm::TokenKind::Control});
    spec.end = kEnd;
    spec.stop = {kEnd};
    return std::move(*llm::Tokenizer::build(spec));
  }();
  return *tokenizer;
}

inline llm::ModelFacts testFacts(int64_t pages = 256) {
  return {.vocabulary = kVocabulary,
          .contextLength = 200,
          .pageSize = 4,
          .pages = pages,
          .pageBytes = 64,
          .maxRows = 64};
}

/// One choice as its outputs tell it.
struct Told {
  std::vector<int32_t> tokens;
  std::string text;
  std::vector<float> logprobs; // of the chosen ones
  FinishReason finish = FinishReason::None;
  std::string error;
  RequestStatistics statistics; // if they came with this choice
  bool operator==(const Told &other) const {
    return tokens == other.tokens && text == other.text && logprobs == other.logprobs &&
           finish == other.finish;
  }
};

inline std::ostream &operator<<(std::ostream &out, const Told &told) {
  out << told.tokens.size() << " tokens:";
  for (int32_t token : told.tokens)
    out << ' ' << token;
  return out << " \"" << told.text << "\" finish " << int(told.finish) << ' ' << told.error;
}

/// Outputs by request and choice; one for any number of requests.
class Listener {
public:
  Request listen(Request request) {
    request.receive = [this](const Output &output) { hear(output); };
    return request;
  }
  const Told &of(RequestId id, int32_t choice = 0) { return told[{id, choice}]; }
  size_t ended = 0; // requests

private:
  void hear(const Output &output) {
    Told &one = told[{output.request, output.choice}];
    EXPECT_EQ(one.finish, FinishReason::None) << "an output after the last";
    one.tokens.insert(one.tokens.end(), output.tokens.begin(), output.tokens.end());
    one.text += output.text;
    for (const llm::Logprobs &logprobs : output.logprobs)
      one.logprobs.push_back(logprobs.chosen.logprob);
    one.finish = output.finish;
    one.error = output.status.message();
    if (output.statistics) {
      one.statistics = *output.statistics;
      ++ended;
    }
  }
  std::map<std::pair<RequestId, int32_t>, Told> told;
};

/// Logits of the token after `tokens`, computed from nothing.
inline std::vector<float> plainLogits(const std::vector<int32_t> &tokens) {
  llm::HashModel model(testFacts(64));
  std::vector<int32_t> table(64);
  for (int32_t page = 0; page < 64; ++page)
    table[size_t(page)] = 63 - page;
  std::vector<float> logits;
  for (int32_t i = 0; i < int32_t(tokens.size()); ++i) {
    const int32_t offsets[] = {0, 1}, length = i + 1, row = 0;
    const auto found = model.forward({{&tokens[size_t(i)], 1}, offsets, {&length, 1}, table, 64, {&row, 1}});
    EXPECT_TRUE(found.isOk()) << found.status().message();
    logits.assign(found->begin(), found->end());
  }
  return logits;
}

inline Told plainDecoding(const Request &request, int32_t choice) {
  std::vector<int32_t> tokens = request.prompt;
  llm::TokenCounts counts;
  counts.addPrompt(request.prompt);
  llm::SamplingPipeline pipeline;
  llm::Distribution distribution;
  llm::Detokenizer detokenizer(testTokenizer());
  for (int32_t token : request.prompt)
    detokenizer.push(token);
  Told told;
  while (told.finish == FinishReason::None) {
    const std::vector<float> logits = plainLogits(tokens);
    EXPECT_TRUE(pipeline.run(request.sampling, counts, logits, distribution).isOk());
    const llm::RandomKey key{request.sampling.seed, uint32_t(choice)};
    const int32_t token = draw(distribution, uniform(key, tokens.size(), llm::Purpose::Token));
    if (request.logprobs)
      told.logprobs.push_back((*request.logprobs == llm::LogprobMode::Raw
                                   ? *llm::rawLogprobs(logits, token, 0)
                                   : llm::processedLogprobs(distribution, token, 0))
                                  .chosen.logprob);
    tokens.push_back(token);
    told.tokens.push_back(token);
    counts.push(token);
    const bool stops = std::count(request.stopTokens.begin(), request.stopTokens.end(), token) > 0;
    if (stops || (token == kEnd && !request.ignoreTokenizerStops)) {
      told.finish = FinishReason::Stop;
      told.text += detokenizer.finish();
      break;
    }
    const size_t before = told.text.size();
    told.text += detokenizer.push(token);
    for (size_t end = before + 1; end <= told.text.size() && told.finish == FinishReason::None; ++end)
      for (const std::string &string : request.stopStrings)
        if (std::string_view(told.text).substr(0, end).ends_with(string)) {
          told.text.resize(end - string.size());
          told.finish = FinishReason::Stop;
          break;
        }
    if (told.finish == FinishReason::None && (int64_t(told.tokens.size()) == request.maxTokens ||
                                              int64_t(tokens.size()) == testFacts().contextLength)) {
      told.finish = FinishReason::Length;
      told.text += detokenizer.finish();
    }
  }
  return told;
}

/// Requests of every kind; many begin alike, so that prefixes are shared.
inline Request randomRequest(std::mt19937 &random) {
  const auto below = [&](uint32_t limit) { return int32_t(random() % limit); };
  Request request;
  for (int32_t i = 0, length = 1 + below(40), text = below(3); i < length; ++i)
    request.prompt.push_back(i < 13 ? (i * 7 + text) % kEnd : below(kEnd));
  request.maxTokens = 1 + below(25);
  llm::SamplingParameters &sampling = request.sampling;
  sampling.seed = random();
  sampling.temperature = below(3) ? 0.5f + 0.5f * float(below(3)) : 0;
  if (below(3) == 0)
    sampling.topK = 1 + below(10);
  if (below(3) == 0)
    sampling.topP = 0.9f;
  if (below(3) == 0) {
    sampling.repetitionPenalty = 1.3f;
    sampling.frequencyPenalty = 0.4f;
  }
  if (below(4) == 0)
    sampling.logitBias = {{3, 2.f}, {kEnd, -100.f}};
  if (below(3) == 0)
    request.stopStrings = {"bca", "the\n", "!"};
  if (below(4) == 0)
    request.stopTokens = {5};
  if (below(3) == 0)
    request.logprobs = below(2) ? llm::LogprobMode::Raw : llm::LogprobMode::Processed;
  if (below(4) == 0)
    request.choices = 2 + below(3);
  if (below(4) == 0)
    request.cacheSalt = "salt";
  request.priority = below(3);
  return request;
}

/// Random requests and what plain decoding makes of them.
struct Workload {
  std::vector<Request> requests;
  std::vector<std::vector<Told>> expected;      // of each request, by choice
  std::map<std::vector<int32_t>, int32_t> next; // what follows every prefix of the first choices' texts

  Workload(uint32_t seed, int count) {
    std::mt19937 random(seed);
    for (int i = 0; i < count; ++i) {
      requests.push_back(randomRequest(random));
      expected.emplace_back();
      for (int32_t choice = 0; choice < requests.back().choices; ++choice)
        expected.back().push_back(plainDecoding(requests.back(), choice));
      std::vector<int32_t> text = requests.back().prompt;
      for (int32_t token : expected.back()[0].tokens) {
        next[text] = token;
        text.push_back(token);
      }
    }
  }
};

inline std::unique_ptr<Engine> makeEngine(llm::ForwardModel &model, EngineOptions options = {}) {
  if (options.scheduling.sequences == SchedulerOptions().sequences)
    options.scheduling.sequences = 16;
  auto engine = Engine::create(model, &testTokenizer(), options);
  EXPECT_TRUE(engine.isOk()) << engine.status().message();
  return std::move(*engine);
}

inline RequestId submit(Engine &engine, Request request) {
  const auto id = engine.submit(std::move(request));
  EXPECT_TRUE(id.isOk()) << id.status().message();
  return *id;
}

/// Steps until nothing is left to do, looking at the pages after each.
inline void finishAll(Engine &engine) {
  while (engine.step())
    ASSERT_EQ(engine.checkPages().message(), "");
  EXPECT_EQ(engine.statistics().availablePages, engine.statistics().totalPages);
  EXPECT_EQ(engine.statistics().running + engine.statistics().waiting, 0);
}

} // namespace dspark::serving
