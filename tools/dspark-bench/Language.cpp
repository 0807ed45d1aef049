#include "tools/dspark-bench/Language.h"
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>

namespace dspark {
namespace {

using Clock = std::chrono::steady_clock;

// Sequences of random tokens, each on pages of its own, that all start empty.
class Writer {
public:
  Writer(llm::ForwardModel &model, int64_t sequences, int64_t longest)
      : model(model), lengths(size_t(sequences), 0),
        tablePages((longest + model.facts().pageSize - 1) / model.facts().pageSize) {
    table.resize(size_t(sequences * tablePages));
    std::iota(table.begin(), table.end(), 0);
  }

  // `rows` more tokens of every sequence; logits of the last ones.
  Status step(int64_t rows) {
    tokens.clear();
    offsets.assign(1, 0);
    wanted.clear();
    for (int32_t &length : lengths) {
      for (int64_t i = 0; i < rows; ++i)
        tokens.push_back(int32_t(uint64_t(++drawn * 2654435761u) % uint64_t(model.facts().vocabulary)));
      length += int32_t(rows);
      offsets.push_back(int32_t(tokens.size()));
      wanted.push_back(int32_t(tokens.size()) - 1);
    }
    return model.forward({tokens, offsets, lengths, table, tablePages, wanted}).status();
  }

private:
  llm::ForwardModel &model;
  std::vector<int32_t> lengths, tokens, offsets, table, wanted;
  int64_t tablePages;
  uint64_t drawn = 0;
};

// Tokens per second of one pass: `steps` steps of `rows` tokens in each of `sequences`.
StatusOr<double> pass(llm::ForwardModel &model, int64_t sequences, int64_t rows, int64_t steps) {
  Writer writer(model, sequences, rows * steps);
  Clock::time_point start = Clock::now();
  for (int64_t i = 0; i < steps; ++i)
    DSPARK_RETURN_IF_ERROR(writer.step(rows));
  return double(sequences * rows * steps) / std::chrono::duration<double>(Clock::now() - start).count();
}

struct Rates {
  double median = 0, low = 0, high = 0;
};

StatusOr<Rates> measure(llm::ForwardModel &model, int64_t sequences, int64_t rows, int64_t steps,
                        int passes) {
  std::vector<double> rates;
  DSPARK_RETURN_IF_ERROR(
      pass(model, sequences, rows, std::min<int64_t>(steps, 2)).status()); // prepares for the shapes
  for (int i = 0; i < passes; ++i) {
    DSPARK_ASSIGN_OR_RETURN(double rate, pass(model, sequences, rows, steps));
    rates.push_back(rate);
  }
  std::ranges::sort(rates);
  return Rates{rates[rates.size() / 2], rates.front(), rates.back()};
}

} // namespace

Status runLanguageBench(const LanguageBench &options) {
  DSPARK_ASSIGN_OR_RETURN(auto file, PlanFile::open(options.plan));
  DSPARK_ASSIGN_OR_RETURN(auto program, Program::create(std::move(file)));
  llm::PlanModelOptions modelOptions;
  modelOptions.session = options.session;
  modelOptions.cacheTokens =
      std::max(options.prompt, (options.decode + modelOptions.pageSize) * options.batch);
  DSPARK_ASSIGN_OR_RETURN(auto model, llm::PlanModel::create(std::move(program), modelOptions));
  const int64_t chunk = std::min(options.prompt, model->facts().maxRows);
  const struct {
    std::string name;
    int64_t sequences, rows, steps;
  } cases[] = {{"prompt", 1, chunk, options.prompt / chunk},
               {"decode", 1, 1, options.decode},
               {"batch", options.batch, 1, options.decode}};
  nlohmann::json report = {{"plan", options.plan}, {"threads", model->session().threads()}};
  for (const auto &one : cases) {
    DSPARK_ASSIGN_OR_RETURN(Rates rates, measure(*model, one.sequences, one.rows, one.steps, options.passes));
    report[one.name] = {{"tokens", one.sequences * one.rows * one.steps},
                        {"sequences", one.sequences},
                        {"tokens_per_second", rates.median},
                        {"least", rates.low},
                        {"most", rates.high}};
    if (!options.isJson)
      std::printf("%-7s %5lld tokens of %3lld sequences: %9.1f tokens/s [%.1f, %.1f]\n", one.name.c_str(),
                  static_cast<long long>(one.sequences * one.rows * one.steps),
                  static_cast<long long>(one.sequences), rates.median, rates.low, rates.high);
  }
  if (options.isJson)
    std::cout << report.dump(2) << "\n";
  return Status::ok();
}

} // namespace dspark
