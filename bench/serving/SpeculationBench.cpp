#include "bench/serving/SpeculationBench.h"
#include "runtime/llm/model/StepCost.h"
#include <algorithm>
#include <cstdio>

namespace dspark {
namespace {

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

} // namespace

StatusOr<bool> SpeculationBench::run(const std::string &set, const Prompts &prompts,
                                     int32_t sequences) const {
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

StatusOr<Way> SpeculationBench::plainWay(int32_t sequences) const {
  Way plain{"plain", nullptr, {}};
  DSPARK_ASSIGN_OR_RETURN(plain.engine, makeEngine(sequences, nullptr));
  return plain;
}

StatusOr<double> SpeculationBench::answer(Way &way, const Prompts &prompts, Answers &answers) const {
  const serving::EngineStatistics before = way.engine->statistics();
  answers.resize(prompts.size() * size_t(options.repeats));
  Status failure;
  for (size_t i = 0; i < answers.size(); ++i) {
    serving::Request request;
    request.prompt = prompts[i % prompts.size()];
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

// Plain, auto, and the fixed lengths.
StatusOr<std::vector<Way>> SpeculationBench::makeWays(int32_t sequences) const {
  std::vector<Way> ways(1);
  DSPARK_ASSIGN_OR_RETURN(ways[0], plainWay(sequences));
  using enum llm::SpeculationOptions::Admission;
  auto add = [&](std::string name, int32_t longest, const llm::SpeculationOptions &policy) -> Status {
    DSPARK_ASSIGN_OR_RETURN(
        llm::CostTable steps,
        llm::measureSteps(model, {.sequences = sequences, .drafts = kLongestLookup, .clock = clock}));
    std::vector<llm::SpeculationSource> sources(1);
    DSPARK_ASSIGN_OR_RETURN(sources[0], makeSource(sequences, longest));
    DSPARK_ASSIGN_OR_RETURN(
        auto speculation,
        llm::Speculation::create(model.facts().vocabulary, std::move(steps), std::move(sources), policy));
    ways.push_back({std::move(name), nullptr, {}});
    DSPARK_ASSIGN_OR_RETURN(ways.back().engine, makeEngine(sequences, std::move(speculation)));
    return Status::ok();
  };
  DSPARK_RETURN_IF_ERROR(add("auto", kLongestLookup, {}));
  for (int32_t length : options.lengths) // a share that is never used up: they are not to be parked
    DSPARK_RETURN_IF_ERROR(add(std::to_string(length), length, {.admission = Everything, .lossShare = 1000}));
  return ways;
}

StatusOr<std::unique_ptr<serving::Engine>>
SpeculationBench::makeEngine(int32_t sequences, std::unique_ptr<llm::Speculation> speculation) const {
  serving::EngineOptions engine;
  engine.scheduling.sequences = sequences;
  engine.scheduling.rowsPerStep = engine.scheduling.longestChunk = model.facts().maxRows;
  engine.sharePrefixes = false; // every round computes the same
  engine.clock = clock;
  return serving::Engine::create(model, nullptr, std::move(engine), std::move(speculation));
}

void SpeculationBench::print(const std::string &set, int32_t sequences, const std::vector<Way> &ways) const {
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

} // namespace dspark
