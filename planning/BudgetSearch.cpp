#include "planning/BudgetSearch.h"
#include <algorithm>

namespace dspark {
namespace {

constexpr double kAim = 0.94;    // of the target: 97 % of a bound on a relative error
constexpr double kEnough = 0.81; // 90 % of it
constexpr double kLeastStep = 1.05, kMostStep = 8;
constexpr double kLeastShare = 0.1; // of an interval, in logarithms

} // namespace

double BudgetSearch::between() const {
  double whole = std::log(high.budget / low.budget), share = 0.5;
  if (low.found > 0 && std::isfinite(high.found))
    share = std::log(kAim * target / low.found) / std::log(high.found / low.found);
  // Not too near to either end, where a jump would leave the interval as it was.
  return low.budget * std::exp(whole * std::clamp(share, kLeastShare, 1 - kLeastShare));
}

void BudgetSearch::tell(double found) {
  (found <= target ? low : high) = {current, found};
  double step = found <= 0 ? kMostStep : kAim * target / found; // a NaN is clamped to the least
  double next = current * std::min(kMostStep, std::fmax(1 / kMostStep, step));
  if (low.budget > 0 && std::isfinite(high.budget))
    next = between();
  else if (!(found <= target))
    next = std::min(next, current / kLeastStep);
  else
    next = std::max(next, current * kLeastStep);
  current = next;
}

bool BudgetSearch::isNear(double found) const { return found <= target && found >= kEnough * target; }

} // namespace dspark
