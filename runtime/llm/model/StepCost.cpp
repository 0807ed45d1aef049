#include "runtime/llm/model/StepCost.h"
#include <algorithm>
#include <chrono>
#include <limits>
#include <numeric>
#include <set>

namespace dspark::llm {

double machineClock() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

namespace {

constexpr int64_t kMostDrafts = 32; // in one step; beyond, the table goes on with its slope

// One step of `sequences` rows and `drafts` more, dealt out evenly; all sequences use the same pages.
class Step {
public:
  Step(const ModelFacts &facts, int64_t context, const CostPoint &point) {
    int64_t longest = 0;
    offsets.push_back(0);
    for (int32_t s = 0; s < point.sequences; ++s) {
      int64_t rows = 1 + (point.drafts * int64_t(s + 1)) / point.sequences -
                     (point.drafts * int64_t(s)) / point.sequences;
      longest = std::max(longest, context + rows);
      offsets.push_back(offsets.back() + int32_t(rows));
      lengths.push_back(int32_t(context + rows));
    }
    for (int32_t row = 0; row < offsets.back(); ++row)
      tokens.push_back(int32_t(uint32_t(row) * 7919u % uint32_t(facts.vocabulary)));
    wanted.resize(tokens.size());
    std::iota(wanted.begin(), wanted.end(), 0);
    tablePages = (longest + facts.pageSize - 1) / facts.pageSize;
    for (int32_t s = 0; s < point.sequences; ++s)
      for (int64_t j = 0; j < tablePages; ++j)
        table.push_back(int32_t(j));
    fits = int64_t(tokens.size()) <= facts.maxRows && longest <= facts.contextLength &&
           tablePages <= facts.pages;
  }

  Status run(ForwardModel &model) const {
    return model.forward({tokens, offsets, lengths, table, tablePages, wanted}).status();
  }

  bool fits = false;

private:
  std::vector<int32_t> tokens, offsets, lengths, table, wanted;
  int64_t tablePages = 0;
};

// Doublings, for one sequence and for the most: enough for interpolation, in a fraction of a second. Steps
// that are run correct the table later.
std::vector<CostPoint> pointsOf(const StepCostOptions &options) {
  if (options.isFine) {
    std::vector<CostPoint> all = CostTable::pointsToMeasure(options.sequences, options.drafts);
    std::erase_if(
        all, [](const CostPoint &p) { return p.drafts > std::max<int64_t>(kMostDrafts, 2 * p.sequences); });
    return all;
  }
  std::vector<CostPoint> points;
  for (int32_t sequences : std::set{1, options.sequences}) {
    int64_t most = std::min(int64_t(sequences) * options.drafts, std::max(kMostDrafts, int64_t(sequences)));
    points.push_back({sequences, 0});
    for (int64_t drafts = 1; drafts <= most; drafts *= 2)
      points.push_back({sequences, int32_t(drafts)});
  }
  return points;
}

} // namespace

StatusOr<CostTable> measureSteps(ForwardModel &model, const StepCostOptions &options) {
  const std::function<double()> clock = options.clock ? options.clock : machineClock;
  std::vector<Step> steps;
  std::vector<CostPoint> measured;
  for (CostPoint point : pointsOf(options)) {
    Step step(model.facts(), options.context, point);
    if (!step.fits)
      continue;
    DSPARK_RETURN_IF_ERROR(step.run(model)); // prepares for these shapes
    point.seconds = std::numeric_limits<double>::infinity();
    steps.push_back(std::move(step));
    measured.push_back(point);
  }
  for (int i = 0; i < options.repeats; ++i) // by turns: what disturbs a while does not disturb one step alone
    for (size_t p = 0; p < steps.size(); ++p) {
      const double start = clock();
      DSPARK_RETURN_IF_ERROR(steps[p].run(model));
      measured[p].seconds = std::min(measured[p].seconds, clock() - start);
    }
  if (measured.empty())
    return invalidArgument("no step of " + std::to_string(options.context) + " tokens fits a model of " +
                           std::to_string(model.facts().pages) + " pages");
  DSPARK_ASSIGN_OR_RETURN(CostTable table, CostTable::create(std::move(measured)));
  table.refine();
  return table;
}

} // namespace dspark::llm
