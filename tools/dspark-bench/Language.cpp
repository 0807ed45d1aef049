#include "tools/dspark-bench/Language.h"
#include "tools/dspark-bench/Probe.h"
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>

namespace dspark {
namespace {

// Of one thread it is time on the core, so that what others take away does not count.
double seconds(int threads) {
  timespec now;
  clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

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
StatusOr<double> pass(llm::PlanModel &model, int64_t sequences, int64_t rows, int64_t steps) {
  const int threads = model.session().threads();
  Writer writer(model, sequences, rows * steps);
  const double start = seconds(threads);
  for (int64_t i = 0; i < steps; ++i)
    DSPARK_RETURN_IF_ERROR(writer.step(rows));
  return double(sequences * rows * steps) / (seconds(threads) - start);
}

struct Rates {
  double median = 0, low = 0, high = 0;
  double flops = 0; // of a step
};

StatusOr<Rates> measure(llm::PlanModel &model, int64_t sequences, int64_t rows, int64_t steps, int passes) {
  std::vector<double> rates;
  Profile profile;
  model.session().setProfile(&profile);
  Status first = pass(model, sequences, rows, 1).status(); // prepares for the shapes
  model.session().setProfile(nullptr);
  DSPARK_RETURN_IF_ERROR(first);
  for (int i = 0; i < passes; ++i) {
    DSPARK_ASSIGN_OR_RETURN(double rate, pass(model, sequences, rows, steps));
    rates.push_back(rate);
  }
  std::ranges::sort(rates);
  Rates result{rates[rates.size() / 2], rates.front(), rates.back()};
  for (const auto &[step, line] : profile.lines)
    result.flops += line.flops;
  return result;
}

// Bytes of the plan's weights, which every step reads once.
double weightBytes(const Program &program) {
  double bytes = 0;
  for (const ValueInfo &value : program.values())
    bytes += value.kind == fb::ValueKind::Constant ? double(value.bytes.size()) : 0;
  return bytes;
}

// What the machine could do at most: read the weights from where they fit, and multiply 8-bit codes.
struct Limits {
  double bytesPerSecond, opsPerSecond;

  Limits(const CostModel &machine, double weights, int threads) {
    auto level = std::ranges::find_if(machine.levels, [&](const auto &l) { return l.bytes >= weights; });
    bytesPerSecond = (level == machine.levels.end() ? machine.levels.back() : *level).allPerSecond;
    const Peak *peak = machine.peakOf(activeIsa());
    opsPerSecond = peak ? peak->int8 * threads : 0;
  }
};

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
  const int threads = model->session().threads();
  const double weights = weightBytes(model->session().program());
  nlohmann::json report = {{"plan", options.plan}, {"threads", threads}};
  for (const auto &one : cases) {
    const Limits limits(probeLimits(MachineFacts::read(), threads), weights, threads);
    DSPARK_ASSIGN_OR_RETURN(Rates rates, measure(*model, one.sequences, one.rows, one.steps, options.passes));
    const double stepsPerSecond = rates.median / double(one.sequences * one.rows);
    const double ofBandwidth = weights * stepsPerSecond / limits.bytesPerSecond;
    const double ofPeak = rates.flops * stepsPerSecond / limits.opsPerSecond;
    report[one.name] = {{"tokens", one.sequences * one.rows * one.steps},
                        {"sequences", one.sequences},
                        {"tokens_per_second", rates.median},
                        {"least", rates.low},
                        {"most", rates.high},
                        {"share_of_bandwidth", ofBandwidth},
                        {"share_of_peak", ofPeak}};
    if (!options.isJson)
      std::printf("%-7s %5lld tokens of %3lld sequences: %9.1f tokens/s [%.1f, %.1f]; weights at %.0f %% of "
                  "the read bandwidth, products at %.0f %% of the 8-bit peak\n",
                  one.name.c_str(), static_cast<long long>(one.sequences * one.rows * one.steps),
                  static_cast<long long>(one.sequences), rates.median, rates.low, rates.high,
                  100 * ofBandwidth, 100 * ofPeak);
  }
  if (options.isJson)
    std::cout << report.dump(2) << "\n";
  return Status::ok();
}

} // namespace dspark
