// Ways to speculate beside each other on prompts that a model answers greedily (speculation.cpp).
#pragma once
#include "runtime/llm/speculation/Speculation.h"
#include "runtime/serving/Engine.h"
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace dspark {

inline constexpr int32_t kLongestLookup = 16; // of dspark-rt's

struct SpeculationBenchOptions {
  std::vector<int32_t> lengths = {1, 2, 3, 4, 5, 6, 7, 8}; // fixed ones
  std::vector<int32_t> stops;                              // the tokenizer's
  int64_t tokens = 64;                                     // of an answer
  int rounds = 3;                                          // that count
  int repeats = 1; // of all prompts in a round: how unevenly the last answers end then matters less
};

using Prompts = std::vector<std::vector<int32_t>>;
using Answers = std::vector<std::vector<int32_t>>;

/// A drafter for so many sequences, of drafts of at most `longest` tokens where it can be told.
using MakeSource = std::function<StatusOr<llm::SpeculationSource>(int32_t sequences, int32_t longest)>;

/// An engine with one way to speculate, and its tokens per second by rounds.
struct Way {
  std::string name;
  std::unique_ptr<serving::Engine> engine;
  std::vector<double> rates;
};

class SpeculationBench {
public:
  /// `clock` tells what `model` takes. Options and model must outlive it.
  SpeculationBench(const SpeculationBenchOptions &options, llm::ForwardModel &model,
                   std::function<double()> clock, MakeSource makeSource)
      : options(options), model(model), clock(std::move(clock)), makeSource(std::move(makeSource)) {}

  /// One set of prompts with so many sequences side by side; prints a line. False: answers differ.
  StatusOr<bool> run(const std::string &set, const Prompts &prompts, int32_t sequences) const;
  StatusOr<Way> plainWay(int32_t sequences) const;
  /// Tokens per second of answering all prompts, as often as they repeat; prefill is not counted.
  StatusOr<double> answer(Way &way, const Prompts &prompts, Answers &answers) const;

private:
  StatusOr<std::vector<Way>> makeWays(int32_t sequences) const;
  StatusOr<std::unique_ptr<serving::Engine>> makeEngine(int32_t sequences,
                                                        std::unique_ptr<llm::Speculation> speculation) const;
  void print(const std::string &set, int32_t sequences, const std::vector<Way> &ways) const;

  const SpeculationBenchOptions &options;
  llm::ForwardModel &model;
  std::function<double()> clock;
  MakeSource makeSource;
};

} // namespace dspark
