#include "runtime/llm/model/DraftCost.h"
#include "runtime/llm/model/StepCost.h"
#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>

namespace dspark::llm {
namespace {

// Sequences of the engine count up from 1.
constexpr SequenceId kFirstSequence = std::numeric_limits<SequenceId>::max() / 2;

// The drafter's sequences of one measurement.
class Bench {
public:
  Bench(Drafter &drafter, const ModelFacts &facts, const DraftCostOptions &options)
      : drafter(drafter), facts(facts), context(std::min(options.context, facts.contextLength / 2)),
        clock(options.clock ? options.clock : machineClock) {
    // All sequences use the same pages: what is in them does not matter here.
    pages.resize(size_t(std::min(facts.pages, (facts.contextLength + facts.pageSize - 1) / facts.pageSize)));
    std::iota(pages.begin(), pages.end(), 0);
  }
  ~Bench() { forget(); }

  Status begin(int32_t count) {
    forget();
    for (sequences = 0; sequences < count; ++sequences) {
      DSPARK_RETURN_IF_ERROR(drafter.begin(kFirstSequence + SequenceId(sequences)));
      DSPARK_RETURN_IF_ERROR(append(sequences, context));
    }
    return Status::ok();
  }

  Status append(int32_t sequence, int64_t count) {
    std::vector<int32_t> tokens;
    for (int64_t i = 0; i < count; ++i)
      tokens.push_back(int32_t(uint32_t(i * 7919 + sequence * 104729) % uint32_t(facts.vocabulary)));
    return drafter.append(kFirstSequence + SequenceId(sequence), tokens);
  }

  /// Drafts of up to `limit` tokens: the fastest of `repeats`, and how long the longest came out.
  StatusOr<CostPoint> measure(int32_t limit, int repeats) {
    std::vector<DraftRequest> requests;
    for (int32_t s = 0; s < sequences; ++s)
      requests.push_back({kFirstSequence + SequenceId(s), limit, nullptr, pages});
    CostPoint point{sequences, 0, std::numeric_limits<double>::infinity()};
    for (int i = 0; i < repeats; ++i) {
      std::vector<Draft> drafts(requests.size());
      const double start = clock();
      DSPARK_RETURN_IF_ERROR(drafter.propose(requests, drafts));
      point.seconds = std::min(point.seconds, clock() - start);
      for (const Draft &draft : drafts)
        point.drafts = std::max(point.drafts, int32_t(draft.tokens.size()));
    }
    return point;
  }

private:
  void forget() {
    for (; sequences > 0; --sequences)
      drafter.forget(kFirstSequence + SequenceId(sequences - 1));
  }

  Drafter &drafter;
  const ModelFacts &facts;
  const int64_t context;
  const std::function<double()> clock;
  std::vector<int32_t> pages;
  int32_t sequences = 0;
};

} // namespace

StatusOr<DraftCost> measureDrafts(Drafter &drafter, const ModelFacts &facts,
                                  const DraftCostOptions &options) {
  Bench bench(drafter, facts, options);
  std::vector<CostPoint> points;
  for (int32_t sequences : std::set{1, options.sequences}) {
    DSPARK_RETURN_IF_ERROR(bench.begin(sequences));
    std::map<int32_t, CostPoint> line; // drafts may end before their limit, even before their first token
    for (int32_t limit = 1;; limit = std::min(2 * limit, drafter.longestDraft())) {
      DSPARK_RETURN_IF_ERROR(bench.measure(limit, 1).status()); // prepares for these shapes
      DSPARK_ASSIGN_OR_RETURN(CostPoint point, bench.measure(limit, options.repeats));
      point.drafts = std::max(point.drafts, 1);
      line[point.drafts] = point;
      if (limit == drafter.longestDraft())
        break;
    }
    for (const auto &[drafts, point] : line)
      points.push_back(point);
  }
  DSPARK_RETURN_IF_ERROR(bench.begin(1));
  DSPARK_ASSIGN_OR_RETURN(const CostPoint first, bench.measure(1, 1));
  DSPARK_ASSIGN_OR_RETURN(const CostPoint again, bench.measure(1, options.repeats));
  const double backlog = std::max(first.seconds - again.seconds, 0.0) / double(options.context);
  DSPARK_ASSIGN_OR_RETURN(CostTable table, CostTable::create(std::move(points), CostTable::Kind::Drafter));
  return DraftCost{std::move(table), backlog};
}

} // namespace dspark::llm
