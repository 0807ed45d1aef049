// Speculation beside plain decoding and beside lookup with drafts of a fixed length, on prompts that a model
// answers greedily.
//
//   bench_speculation PLAN PROMPTS.jsonl ... [--sequences N ...] [--lengths N ...] [--set-size N] [--tokens
//   N]
//                     [--threads N] [--rounds N] [--replay]
//
// Every way has an engine of its own, which keeps what it has learned; they take turns, in an order that
// reverses from round to round. A first round, which is not counted, checks that all give the same tokens.
// Times are those of decoding, drafting and scheduling; of one thread they are time on the core, so that what
// others take away does not count, also to the policy. With --replay the model answers once and its steps are
// measured once; then the ways are compared on a model that repeats both (ReplayModel.h): what the policy
// gains where nothing disturbs it. Exit code 3: answers differ.
#include "bench/serving/ReplayModel.h"
#include "runtime/llm/model/StepCost.h"
#include "runtime/llm/speculation/LookupDrafter.h"
#include "runtime/serving/Engine.h"
#include "tools/dspark-rt/Conversation.h"
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>

using namespace dspark;

namespace {

constexpr int32_t kLongestLookup = 16; // of dspark-rt's

struct Options {
  std::string plan;
  std::vector<std::string> sets;
  std::vector<int32_t> sequences = {1, 2, 4, 8, 16}, lengths = {1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<int32_t> stops; // the tokenizer's
  size_t prompts = 16;
  int64_t tokens = 64;
  int threads = 1, rounds = 3;
  int32_t leastMatch = llm::LookupOptions().leastMatch;
  bool replays = false;
};

double secondsOf(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}
std::function<double()> clockFor(int threads) {
  return threads == 1 ? [] { return secondsOf(CLOCK_THREAD_CPUTIME_ID); }
                      : [] { return secondsOf(CLOCK_MONOTONIC); };
}

using Prompts = std::vector<std::vector<int32_t>>;
using Answers = std::vector<std::vector<int32_t>>;

// An engine with one way to speculate, and its tokens per second by rounds.
struct Way {
  std::string name;
  std::unique_ptr<serving::Engine> engine;
  std::vector<double> rates;
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// Median, least and largest ratio of two ways' rates, by rounds.
struct Ratio {
  double middle, low, high;

  Ratio(const Way &way, const Way &to) {
    std::vector<double> ratios;
    for (size_t i = 0; i < way.rates.size(); ++i)
      ratios.push_back(way.rates[i] / to.rates[i]);
    middle = median(ratios);
    const auto [least, most] = std::ranges::minmax(ratios);
    low = least, high = most;
  }
};

class Bench {
public:
  /// `clock` tells what `model` takes.
  Bench(const Options &options, llm::ForwardModel &model, std::function<double()> clock)
      : options(options), model(model), clock(std::move(clock)) {}

  // One set of prompts with so many sequences side by side. False: answers differ.
  StatusOr<bool> run(const std::string &set, const Prompts &prompts, int32_t sequences) {
    DSPARK_ASSIGN_OR_RETURN(std::vector<Way> ways, makeWays(sequences));
    Answers expected;
    for (Way &way : ways) {
      Answers answers;
      DSPARK_RETURN_IF_ERROR(answer(way, prompts, answers).status());
      if (expected.empty())
        expected = answers;
      if (answers != expected) {
        std::printf("%s, %d sequences: WRONG: %s gives other tokens than plain decoding\n", set.c_str(),
                    sequences, way.name.c_str());
        return false;
      }
    }
    for (int round = 0; round < options.rounds; ++round)
      for (size_t i = 0; i < ways.size(); ++i) {
        Way &way = ways[round % 2 == 0 ? i : ways.size() - 1 - i];
        Answers answers;
        DSPARK_ASSIGN_OR_RETURN(double rate, answer(way, prompts, answers));
        way.rates.push_back(rate);
      }
    print(set, sequences, ways);
    return true;
  }

  StatusOr<Way> plainWay(int32_t sequences) const {
    Way plain{"plain", nullptr, {}};
    DSPARK_ASSIGN_OR_RETURN(plain.engine, makeEngine(sequences, nullptr));
    return plain;
  }

  // Tokens per second of answering all prompts; prefill is not counted.
  StatusOr<double> answer(Way &way, const Prompts &prompts, Answers &answers) const {
    const serving::EngineStatistics before = way.engine->statistics();
    answers.resize(prompts.size());
    Status failure;
    for (size_t i = 0; i < prompts.size(); ++i) {
      serving::Request request;
      request.prompt = prompts[i];
      request.sampling.temperature = 0;
      request.maxTokens = options.tokens;
      request.stopTokens = options.stops;
      request.receive = [&, i](const serving::Output &output) {
        answers[i].insert(answers[i].end(), output.tokens.begin(), output.tokens.end());
        if (!output.status.isOk())
          failure = output.status;
      };
      DSPARK_RETURN_IF_ERROR(way.engine->submit(std::move(request)).status());
    }
    while (way.engine->step())
      continue;
    DSPARK_RETURN_IF_ERROR(failure);
    const serving::EngineStatistics after = way.engine->statistics();
    auto seconds = [](const serving::EngineStatistics &s) {
      return s.decodeSeconds + s.draftSeconds + s.otherSeconds;
    };
    return double(after.outputTokens - before.outputTokens) / (seconds(after) - seconds(before));
  }

private:
  // Plain, auto, and the fixed lengths.
  StatusOr<std::vector<Way>> makeWays(int32_t sequences) const {
    std::vector<Way> ways(1);
    DSPARK_ASSIGN_OR_RETURN(ways[0], plainWay(sequences));
    using enum llm::SpeculationOptions::Admission;
    auto add = [&](std::string name, int32_t longest, const llm::SpeculationOptions &policy) -> Status {
      DSPARK_ASSIGN_OR_RETURN(
          llm::CostTable steps,
          llm::measureSteps(model, {.sequences = sequences, .drafts = kLongestLookup, .clock = clock}));
      std::vector<llm::SpeculationSource> sources(1);
      sources[0].drafter = std::make_unique<llm::LookupDrafter>(
          llm::LookupOptions{.leastMatch = options.leastMatch, .longestDraft = longest});
      DSPARK_ASSIGN_OR_RETURN(
          auto speculation,
          llm::Speculation::create(model.facts().vocabulary, std::move(steps), std::move(sources), policy));
      ways.push_back({std::move(name), nullptr, {}});
      DSPARK_ASSIGN_OR_RETURN(ways.back().engine, makeEngine(sequences, std::move(speculation)));
      return Status::ok();
    };
    DSPARK_RETURN_IF_ERROR(add("auto", kLongestLookup, {}));
    for (int32_t length : options.lengths) // a share that is never used up: they are not to be parked
      DSPARK_RETURN_IF_ERROR(
          add(std::to_string(length), length, {.admission = Everything, .lossShare = 1000}));
    return ways;
  }

  StatusOr<std::unique_ptr<serving::Engine>> makeEngine(int32_t sequences,
                                                        std::unique_ptr<llm::Speculation> speculation) const {
    serving::EngineOptions engine;
    engine.scheduling.sequences = sequences;
    engine.scheduling.rowsPerStep = engine.scheduling.longestChunk = model.facts().maxRows;
    engine.sharePrefixes = false; // every round computes the same
    engine.clock = clock;
    return serving::Engine::create(model, nullptr, std::move(engine), std::move(speculation));
  }

  void print(const std::string &set, int32_t sequences, const std::vector<Way> &ways) const {
    const Way &plain = ways[0], &chosen = ways[1];
    const serving::EngineStatistics counts = chosen.engine->statistics();
    const Ratio gain(chosen, plain);
    std::printf("%-12s %2d sequences: plain %7.1f tokens/s; auto %.3f [%.3f, %.3f], accepted %lld of %lld",
                set.c_str(), sequences, median(plain.rates), gain.middle, gain.low, gain.high,
                static_cast<long long>(counts.acceptedTokens), static_cast<long long>(counts.draftedTokens));
    const Way *best = &plain; // a fixed length of 0 is one, too
    std::string lengths;
    for (size_t i = 2; i < ways.size(); ++i) {
      char text[32];
      std::snprintf(text, sizeof text, " %s: %.3f", ways[i].name.c_str(), Ratio(ways[i], plain).middle);
      lengths += text;
      if (median(ways[i].rates) > median(best->rates))
        best = &ways[i];
    }
    const Ratio share(chosen, *best);
    std::printf("; best fixed %s, auto %.3f [%.3f, %.3f] of it; fixed%s\n", best->name.c_str(), share.middle,
                share.low, share.high, lengths.c_str());
    std::fflush(stdout);
  }

  const Options &options;
  llm::ForwardModel &model;
  std::function<double()> clock;
};

// The ways beside each other on a model that repeats what the real one answers.
StatusOr<bool> replay(const Options &options, llm::PlanModel &model, const std::string &set,
                      const Prompts &prompts, const llm::CostTable &steps) {
  ReplayModel repeating(model.facts(), steps);
  Bench real(options, model, clockFor(options.threads));
  DSPARK_ASSIGN_OR_RETURN(Way plain, real.plainWay(std::ranges::max(options.sequences)));
  Answers answers;
  DSPARK_RETURN_IF_ERROR(real.answer(plain, prompts, answers).status());
  for (size_t i = 0; i < prompts.size(); ++i)
    repeating.know(prompts[i], answers[i]);
  const auto clock = [&] { return repeating.seconds() + secondsOf(CLOCK_THREAD_CPUTIME_ID); };
  bool isRight = true;
  for (int32_t sequences : options.sequences) {
    DSPARK_ASSIGN_OR_RETURN(bool same, Bench(options, repeating, clock).run(set, prompts, sequences));
    isRight &= same;
  }
  return isRight;
}

// The first turns of the file's conversations.
StatusOr<Prompts> readPrompts(const std::string &path, const llm::LanguageModel &language, size_t most) {
  DSPARK_ASSIGN_OR_RETURN(auto conversations, readConversations(path, ""));
  Prompts prompts;
  for (Conversation &conversation : conversations) {
    if (prompts.size() == most)
      break;
    conversation.takeTurn();
    DSPARK_ASSIGN_OR_RETURN(prompts.emplace_back(), conversation.encode(language));
  }
  return prompts;
}

StatusOr<bool> runAll(Options options) {
  DSPARK_ASSIGN_OR_RETURN(auto file, PlanFile::open(options.plan));
  DSPARK_ASSIGN_OR_RETURN(auto program, Program::create(std::move(file)));
  llm::PlanModelOptions model;
  model.session.threads = options.threads;
  model.cacheTokens = std::ranges::max(options.sequences) * 2048;
  DSPARK_ASSIGN_OR_RETURN(auto language, llm::LanguageModel::open(std::move(program), model));
  options.stops = language.tokenizer->spec().stop;
  Bench bench(options, *language.model, clockFor(options.threads));
  std::optional<llm::CostTable> steps;
  if (options.replays) {
    DSPARK_ASSIGN_OR_RETURN(
        steps, llm::measureSteps(*language.model, {.sequences = std::ranges::max(options.sequences),
                                                   .drafts = kLongestLookup,
                                                   .isFine = true,
                                                   .clock = clockFor(options.threads)}));
    std::printf("%s\n", steps->toJson().c_str());
  }
  bool isRight = true;
  for (const std::string &set : options.sets) {
    DSPARK_ASSIGN_OR_RETURN(Prompts prompts, readPrompts(set, language, options.prompts));
    const std::string name = std::filesystem::path(set).stem().string();
    if (steps) {
      DSPARK_ASSIGN_OR_RETURN(bool same, replay(options, *language.model, name, prompts, *steps));
      isRight &= same;
      continue;
    }
    for (int32_t sequences : options.sequences) {
      DSPARK_ASSIGN_OR_RETURN(bool same, bench.run(name, prompts, sequences));
      isRight &= same;
    }
  }
  return isRight;
}

} // namespace

int main(int argc, char **argv) {
  Options options;
  CLI::App app("Speculation beside plain decoding and beside fixed lengths.");
  app.add_option("plan", options.plan, "a language model's plan")->required();
  app.add_option("prompts", options.sets, "JSON-lines files as of dspark-rt --prompts")->required();
  app.add_option("--sequences", options.sequences, "side by side (default 1 2 4 8 16)")
      ->check(CLI::Range(1, 64));
  app.add_option("--lengths", options.lengths, "fixed lengths (default 1 to 8)")
      ->check(CLI::Range(1, kLongestLookup));
  app.add_option("--set-size", options.prompts, "prompts of each file (default 16)")
      ->check(CLI::PositiveNumber);
  app.add_option("--tokens", options.tokens, "of each answer, at most (default 64)")
      ->check(CLI::PositiveNumber);
  app.add_option("--threads", options.threads, "default 1")->check(CLI::Range(1, 1024));
  app.add_option("--least-match", options.leastMatch, "tokens that must have occurred before (default 2)")
      ->check(CLI::PositiveNumber);
  app.add_option("--rounds", options.rounds, "that count (default 3)")->check(CLI::PositiveNumber);
  app.add_flag("--replay", options.replays, "compare on a model that repeats answers and measured times");
  CLI11_PARSE(app, argc, argv);
  const StatusOr<bool> isRight = runAll(options);
  if (!isRight.isOk()) {
    std::fprintf(stderr, "bench_speculation: %s\n", isRight.status().message().c_str());
    return 1;
  }
  return *isRight ? 0 : 3;
}
