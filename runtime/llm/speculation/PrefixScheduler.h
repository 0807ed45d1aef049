// How many drafts of each sequence one step verifies: the hardware-aware prefix scheduler of the DSpark paper
// (2607.05147, section 3 and algorithm 1). Draft j of a sequence survives with probability a_j, the product
// of its estimates up to j. Among all drafts of all sequences those of the highest survival are let in until
// the expected output per second, tau / seconds, is best.
//
// Drawn drafts stay unbiased only if letting draft j in looks at nothing that depends on token j or on later
// ones; estimates j + 1, j + 2, ... do. Early stop looks at drafts in order and stops at the first that does
// not pay; a budget is chosen before the drafts are drawn. A search over all prefixes looks ahead and is for
// deterministic drafts only, which verification keeps equal to plain decoding whatever their lengths.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace dspark::llm {

/// Of one sequence: the probability that draft j is accepted if those before it are, in [0, 1].
using Estimates = std::vector<float>;

/// seconds[n], n from 0: of a step that verifies n drafts, its sequences' own rows and the drafting included.
/// At least one entry; as many drafts are verified at most as it has entries after the first.
using StepSeconds = std::vector<double>;

/// Every entry later by `seconds`.
StepSeconds later(StepSeconds steps, double seconds);

/// Expected accepted tokens of a whole draft.
double expectedAccepted(const Estimates &estimates);

struct Schedule {
  std::vector<int32_t> lengths; // of each sequence
  int32_t drafts = 0;           // their sum
  double tokens = 0;            // expected output of the step, one of each sequence included
  double tokensPerSecond = 0;
};

/// The survivals of all drafts, falling: the order in which they are let in.
std::vector<double> inOrder(std::span<const Estimates> sequences);

/// Stops at the first draft that does not raise the expected output per second. That is the optimum if
/// seconds are convex, as tokens are concave. On stairs it would be caught: with `forecast`, inOrder of what
/// was expected before anything was drawn, a draft is let in also if it pays together with those after it,
/// were they to fall off as forecast.
Schedule scheduleEarlyStop(std::span<const Estimates> sequences, const StepSeconds &seconds,
                           std::span<const double> forecast = {});

/// The `budget` drafts of highest survival.
Schedule scheduleBudget(std::span<const Estimates> sequences, int32_t budget, const StepSeconds &seconds);

/// The best of all prefixes. Sets the budget from estimates of earlier steps, or lengths of deterministic
/// drafts.
Schedule scheduleBest(std::span<const Estimates> sequences, const StepSeconds &seconds);

} // namespace dspark::llm
