#include "runtime/adapt/Estimate.h"
#include <algorithm>

namespace dspark {
namespace {

constexpr size_t kNewest = 5, kShock = 2;
constexpr double kSlower = 1.25, kMuchSlower = 2;

} // namespace

void Estimate::recount() {
  least = count > 0 ? *std::min_element(window.begin(), window.begin() + ptrdiff_t(count)) : 0;
}

void Estimate::add(double seconds, bool isSuspect) {
  hasSuspects |= isSuspect;
  bool losesLeast = count == kWindow && window[next] <= least;
  window[next] = seconds;
  next = (next + 1) % kWindow;
  count = std::min(count + 1, kWindow);
  if (count == 1 || seconds <= least)
    least = seconds;
  else if (losesLeast)
    recount();
}

// Of n numbers between a and b the least is (b - a) / (n + 1) above a on average, and the largest as far
// below b.
double Estimate::doubt() const {
  if (!isMeasured())
    return 0;
  double most = *std::max_element(window.begin(), window.begin() + ptrdiff_t(count));
  return (most - least) / double(count - 1);
}

double Estimate::usual() const {
  std::array<double, kWindow> older{};
  size_t n = 0;
  for (size_t age = kNewest; age < count; ++age)
    older[n++] = window[(next + kWindow - 1 - age) % kWindow];
  if (n == 0)
    return 0;
  std::nth_element(older.begin(), older.begin() + ptrdiff_t(n / 2), older.begin() + ptrdiff_t(n));
  return older[n / 2];
}

bool Estimate::isSettled() const {
  return count == kWindow && window[(next + kWindow - 1) % kWindow] <= kSlower * least;
}

bool Estimate::hasDrifted() const {
  // No median is less than the least: most measurements need no more than this.
  if (count == 0 || window[(next + kWindow - 1) % kWindow] <= kSlower * least)
    return false;
  double reference = usual();
  if (count < kNewest + kEnough || reference <= 0)
    return false;
  auto allAbove = [&](size_t newest, double bound) {
    for (size_t age = 0; age < newest; ++age)
      if (window[(next + kWindow - 1 - age) % kWindow] <= bound * reference)
        return false;
    return true;
  };
  return allAbove(kNewest, kSlower) || allAbove(kShock, kMuchSlower);
}

double Estimate::acceptDrift() {
  double reference = usual();
  std::array<double, kWindow> kept{};
  size_t n = 0;
  for (size_t age = 0; age < kNewest; ++age) {
    double value = window[(next + kWindow - 1 - age) % kWindow];
    if (value > kSlower * reference)
      kept[n++] = value;
  }
  if (before == 0)
    before = least;
  window = kept;
  count = n;
  next = n;
  recount();
  return reference > 0 ? least / reference : 1;
}

void Estimate::restore() {
  if (before == 0 && !hasSuspects)
    return;
  count = next = 0;
  hasSuspects = false;
  for (size_t i = 0; i < kEnough && before > 0; ++i)
    add(before);
  before = 0;
}

} // namespace dspark
