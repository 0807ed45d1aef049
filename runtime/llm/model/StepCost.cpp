#include "runtime/llm/model/StepCost.h"
#include <algorithm>
#include <chrono>
#include <limits>
#include <numeric>
#include <set>

namespace dspark::llm {
namespace {

using Clock = std::chrono::steady_clock;

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
  std::vector<CostPoint> points;
  for (int32_t sequences : std::set{1, options.sequences}) {
    int64_t most = std::min(int64_t(sequences) * options.drafts, std::max(kMostDrafts, int64_t(sequences)));
    points.push_back({sequences, 0});
    for (int64_t drafts = sequences; drafts <= most; drafts *= 2)
      points.push_back({sequences, int32_t(drafts)});
  }
  return points;
}

} // namespace

StatusOr<CostTable> measureSteps(ForwardModel &model, const StepCostOptions &options) {
  std::vector<CostPoint> measured;
  for (CostPoint point : pointsOf(options)) {
    Step step(model.facts(), options.context, point);
    if (!step.fits)
      continue;
    DSPARK_RETURN_IF_ERROR(step.run(model)); // prepares for these shapes
    point.seconds = std::numeric_limits<double>::infinity();
    for (int i = 0; i < options.repeats; ++i) {
      Clock::time_point start = Clock::now();
      DSPARK_RETURN_IF_ERROR(step.run(model));
      point.seconds = std::min(point.seconds, std::chrono::duration<double>(Clock::now() - start).count());
    }
    measured.push_back(point);
  }
  if (measured.empty())
    return invalidArgument("no step of " + std::to_string(options.context) + " tokens fits a model of " +
                           std::to_string(model.facts().pages) + " pages");
  return CostTable::create(std::move(measured));
}

} // namespace dspark::llm
