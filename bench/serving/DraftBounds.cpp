#include "bench/serving/DraftBounds.h"
#include <algorithm>
#include <limits>

namespace dspark {
namespace {

// seconds >= start + rise * drafts
struct Line {
  double start, rise;
};

// Lines through neighbouring corners of the lower convex hull of a step's times by drafts, from 0 to `most`.
std::vector<Line> linesBelow(const llm::CostTable &steps, int32_t sequences, int32_t most) {
  struct Corner {
    double drafts, seconds;
  };
  std::vector<Corner> hull;
  for (int32_t drafts = 0; drafts <= most; ++drafts) {
    const Corner next = {double(drafts), steps.seconds(sequences, drafts)};
    const auto isAbove = [&](const Corner &before, const Corner &corner) {
      return (corner.seconds - before.seconds) * (next.drafts - before.drafts) >=
             (next.seconds - before.seconds) * (corner.drafts - before.drafts);
    };
    while (hull.size() > 1 && isAbove(hull[hull.size() - 2], hull.back()))
      hull.pop_back();
    hull.push_back(next);
  }
  std::vector<Line> lines;
  for (size_t i = 1; i < hull.size(); ++i) {
    const double rise = (hull[i].seconds - hull[i - 1].seconds) / (hull[i].drafts - hull[i - 1].drafts);
    lines.push_back({hull[i].seconds - rise * hull[i].drafts, rise});
  }
  return lines;
}

} // namespace

double gainOfTruth(const llm::CostTable &steps, int32_t sequences, int32_t longest) {
  const double plain = steps.seconds(sequences, 0);
  double best = 1;
  for (int32_t drafts = 1; drafts <= sequences * longest; ++drafts)
    best = std::max(best, (1 + double(drafts) / sequences) * plain / steps.seconds(sequences, drafts));
  return best;
}

Status LookupOracle::know(std::span<const int32_t> prompt, std::span<const int32_t> answer) {
  llm::LookupDrafter drafter(options);
  DSPARK_RETURN_IF_ERROR(drafter.begin(0));
  DSPARK_RETURN_IF_ERROR(drafter.append(0, prompt));
  std::vector<int32_t> &own = standing.emplace_back();
  for (size_t i = 0; i < answer.size(); ++i) {
    DSPARK_RETURN_IF_ERROR(drafter.append(0, answer.subspan(i, 1)));
    const std::span<const int32_t> rest = answer.subspan(i + 1);
    const llm::DraftRequest request = {.sequence = 0, .limit = int32_t(rest.size()) - 1};
    llm::Draft draft; // the last token is the step's own
    if (request.limit > 0)
      DSPARK_RETURN_IF_ERROR(drafter.propose({&request, 1}, {&draft, 1}));
    const auto wrong = std::ranges::mismatch(draft.tokens, rest).in1;
    own.push_back(int32_t(wrong - draft.tokens.begin()));
  }
  return Status::ok();
}

// Of all answers: from each place on, the best number of drafts and then the best from where they lead.
double LookupOracle::leastSeconds(const StepShare &share) const {
  double seconds = 0;
  for (const std::vector<int32_t> &own : standing) {
    std::vector<double> from(own.size(), 0);
    for (size_t i = own.size() - std::min<size_t>(own.size(), 1); i-- > 0;) {
      from[i] = std::numeric_limits<double>::infinity();
      for (int32_t drafts = 0; drafts <= own[i]; ++drafts)
        from[i] = std::min(from[i], share(drafts) + from[i + 1 + size_t(drafts)]);
    }
    seconds += from.empty() ? 0 : from[0];
  }
  return seconds;
}

double LookupOracle::gain(const llm::CostTable &steps, int32_t sequences) const {
  size_t plainSteps = 0; // the first token is the prompt's
  for (const std::vector<int32_t> &own : standing)
    plainSteps += own.size() - std::min<size_t>(own.size(), 1);
  const double plain = double(plainSteps) * steps.seconds(sequences, 0) / sequences;
  if (sequences == 1)
    return plain / leastSeconds([&](int32_t drafts) { return steps.seconds(1, drafts); });
  double least = 0;
  for (const Line &line : linesBelow(steps, sequences, sequences * options.longestDraft))
    least = std::max(
        least, leastSeconds([&](int32_t drafts) { return line.start / sequences + line.rise * drafts; }));
  return plain / least;
}

} // namespace dspark
