// Speculation beside plain decoding and beside lookup with drafts of a fixed length, on prompts that a model
// answers greedily.
//
//   bench_speculation PLAN PROMPTS.jsonl ... [--sequences N ...] [--lengths N ...] [--set-size N]
//                     [--tokens N] [--threads N] [--rounds N] [--repeats N] [--drafter NAME]
//                     [--replay] [--steps FILE]
//
// Every way has an engine of its own, which keeps what it has learned; they take turns, in an order that
// reverses from round to round. A first round, which is not counted, checks that all give the same tokens.
// Times are those of decoding, drafting and scheduling; of one thread they are time on the core, so that what
// others take away does not count, also to the policy. With --replay the model answers once and its steps are
// measured once (or read from FILE, as a replay printed them); then the ways are compared on a model that
// repeats both (ReplayModel.h): what the policy gains where nothing disturbs it, and what no policy could
// pass (DraftBounds.h). With --drafter a drafter of the plan's takes lookup's place, without fixed lengths,
// and what its drafts cost is told. Exit code 3: answers differ.
#include "bench/serving/DraftBounds.h"
#include "bench/serving/ReplayModel.h"
#include "bench/serving/SpeculationBench.h"
#include "runtime/llm/model/DraftCost.h"
#include "runtime/llm/model/PlanDraft.h"
#include "runtime/llm/model/StepCost.h"
#include "runtime/llm/speculation/LookupDrafter.h"
#include "tools/dspark-rt/Conversation.h"
#include "tools/dspark-rt/Language.h"
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>

using namespace dspark;

namespace {

struct Options : SpeculationBenchOptions {
  std::string plan, drafter, steps; // no drafter: lookup
  std::vector<std::string> sets;
  std::vector<int32_t> sequences = {1, 2, 4, 8, 16};
  size_t prompts = 16;
  int threads = 1;
  int32_t leastMatch = llm::LookupOptions().leastMatch;
  bool likeliest = false;
  bool replays = false;

  llm::LookupOptions lookup(int32_t longest) const {
    llm::LookupOptions lookup{.leastMatch = leastMatch, .longestDraft = longest};
    if (likeliest)
      lookup.continuation = llm::LookupOptions::Continuation::Likeliest;
    return lookup;
  }
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

MakeSource lookupSource(const Options &options) {
  return [=](int32_t, int32_t longest) -> StatusOr<llm::SpeculationSource> {
    llm::SpeculationSource source;
    source.drafter = std::make_unique<llm::LookupDrafter>(options.lookup(longest));
    return source;
  };
}

// Of the plan; tells what its drafts cost.
MakeSource planSource(const Options &options, llm::PlanModel &model) {
  return [&](int32_t sequences, int32_t) -> StatusOr<llm::SpeculationSource> {
    DSPARK_ASSIGN_OR_RETURN(const llm::DraftersSection held,
                            llm::decodeDrafters(model.program().file().drafters()));
    const auto record = std::ranges::find(held.drafters, options.drafter, &llm::DrafterRecord::name);
    if (record == held.drafters.end())
      return Status(Code::NotFound, options.plan + " has no drafter '" + options.drafter + "'");
    SessionOptions session;
    session.threads = options.threads;
    DSPARK_ASSIGN_OR_RETURN(auto drafter, llm::openDrafter(*record, model, session));
    DSPARK_ASSIGN_OR_RETURN(llm::DraftCost cost,
                            llm::measureDrafts(*drafter, model.facts(),
                                               {.sequences = sequences, .clock = clockFor(options.threads)}));
    std::printf("%s, %d sequences: drafts cost", options.drafter.c_str(), sequences);
    for (int32_t tokens = 1; tokens <= drafter->longestDraft(); ++tokens)
      std::printf(" %d: %.2f ms", tokens, 1e3 * cost.table.seconds(sequences, tokens));
    std::printf("\n");
    return llm::SpeculationSource{std::move(drafter), std::move(cost.table), cost.backlogSeconds,
                                  record->scaling};
  };
}

// The ways beside each other on a model that repeats what the real one answers.
StatusOr<bool> replay(const Options &options, llm::PlanModel &model, const std::string &set,
                      const Prompts &prompts, const llm::CostTable &steps) {
  ReplayModel repeating(model.facts(), steps);
  const MakeSource lookup = lookupSource(options);
  SpeculationBench real(options, model, clockFor(options.threads), lookup);
  DSPARK_ASSIGN_OR_RETURN(Way plain, real.plainWay(std::ranges::max(options.sequences)));
  Answers answers;
  DSPARK_RETURN_IF_ERROR(real.answer(plain, prompts, answers).status());
  LookupOracle oracle(options.lookup(kLongestLookup));
  for (size_t i = 0; i < prompts.size(); ++i) {
    repeating.know(prompts[i], answers[i]);
    DSPARK_RETURN_IF_ERROR(oracle.know(prompts[i], answers[i]));
  }
  const auto clock = [&] { return repeating.seconds() + secondsOf(CLOCK_THREAD_CPUTIME_ID); };
  bool isRight = true;
  for (int32_t sequences : options.sequences) {
    DSPARK_ASSIGN_OR_RETURN(bool same,
                            SpeculationBench(options, repeating, clock, lookup).run(set, prompts, sequences));
    isRight &= same;
    const double most = gainOfTruth(steps, sequences, kLongestLookup);
    std::printf("%-12s %2d sequences: at most %.3f with lookup, %.3f with drafts that are always right\n",
                set.c_str(), sequences, std::min(oracle.gain(steps, sequences), most), most);
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
  SpeculationBench bench(options, *language.model, clockFor(options.threads),
                         options.drafter.empty() ? lookupSource(options)
                                                 : planSource(options, *language.model));
  std::optional<llm::CostTable> steps;
  if (options.replays && !options.steps.empty()) {
    DSPARK_ASSIGN_OR_RETURN(std::string json, readText(options.steps));
    DSPARK_ASSIGN_OR_RETURN(steps, llm::CostTable::fromJson(json));
  } else if (options.replays) {
    DSPARK_ASSIGN_OR_RETURN(
        steps, llm::measureSteps(*language.model, {.sequences = std::ranges::max(options.sequences),
                                                   .drafts = kLongestLookup,
                                                   .isFine = true,
                                                   .repeats = 8,
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
  app.add_flag("--likeliest", options.likeliest, "what followed most often instead of last");
  app.add_option("--rounds", options.rounds, "that count (default 3)")->check(CLI::PositiveNumber);
  app.add_option("--repeats", options.repeats, "of the prompts in a round (default 1)")
      ->check(CLI::Range(1, 1000));
  CLI::Option *replay =
      app.add_flag("--replay", options.replays, "compare on a model that repeats answers and measured times");
  app.add_option("--drafter", options.drafter, "of the plan's, in place of lookup")->excludes(replay);
  app.add_option("--steps", options.steps, "times of steps as --replay prints them, instead of measuring")
      ->needs(replay);
  CLI11_PARSE(app, argc, argv);
  if (!options.drafter.empty()) // which are lookup's
    options.lengths.clear();
  const StatusOr<bool> isRight = runAll(options);
  if (!isRight.isOk()) {
    std::fprintf(stderr, "bench_speculation: %s\n", isRight.status().message().c_str());
    return 1;
  }
  return *isRight ? 0 : 3;
}
