#include "runtime/llm/speculation/PrefixScheduler.h"
#include <algorithm>
#include <tuple>

namespace dspark::llm {
namespace {

struct Slot {
  double survival;
  int32_t position;
  size_t sequence;
};

/// All drafts that can survive, best first. Survival never rises along a sequence, so every leading part of
/// the order takes prefixes; of equals the earlier position comes first, then the earlier sequence: keys that
/// do not depend on what was drafted.
std::vector<Slot> inOrderOfSurvival(std::span<const Estimates> sequences) {
  std::vector<Slot> slots;
  for (size_t s = 0; s < sequences.size(); ++s) {
    double survival = 1;
    for (size_t j = 0; j < sequences[s].size(); ++j) {
      survival *= std::clamp(double(sequences[s][j]), 0.0, 1.0);
      if (!(survival > 0))
        break;
      slots.push_back({survival, int32_t(j), s});
    }
  }
  std::sort(slots.begin(), slots.end(), [](const Slot &a, const Slot &b) {
    return std::tuple(-a.survival, a.position, a.sequence) < std::tuple(-b.survival, b.position, b.sequence);
  });
  return slots;
}

/// Lets in the first `count` slots.
Schedule take(std::span<const Slot> slots, size_t count, size_t sequences, const StepSeconds &seconds) {
  Schedule schedule{.lengths = std::vector<int32_t>(sequences, 0)};
  schedule.tokens = double(sequences);
  for (const Slot &slot : slots.first(count)) {
    ++schedule.lengths[slot.sequence];
    schedule.tokens += slot.survival;
  }
  schedule.drafts = int32_t(count);
  schedule.tokensPerSecond = schedule.tokens / seconds[count];
  return schedule;
}

/// How many leading slots give the most tokens per second; `stopsEarly`: at the first that gives no more.
size_t bestCount(std::span<const Slot> slots, size_t sequences, const StepSeconds &seconds, bool stopsEarly) {
  double tokens = double(sequences), best = tokens / seconds[0];
  size_t bestCount = 0;
  for (size_t i = 0; i < slots.size() && i + 1 < seconds.size(); ++i) {
    tokens += slots[i].survival;
    const double rate = tokens / seconds[i + 1];
    if (rate > best) {
      best = rate;
      bestCount = i + 1;
    } else if (stopsEarly) {
      break;
    }
  }
  return bestCount;
}

} // namespace

StepSeconds later(StepSeconds steps, double seconds) {
  for (double &step : steps)
    step += seconds;
  return steps;
}

double expectedAccepted(const Estimates &estimates) {
  double survival = 1, tokens = 0;
  for (float estimate : estimates)
    tokens += survival *= estimate;
  return tokens;
}

Schedule scheduleEarlyStop(std::span<const Estimates> sequences, const StepSeconds &seconds) {
  const std::vector<Slot> slots = inOrderOfSurvival(sequences);
  return take(slots, bestCount(slots, sequences.size(), seconds, true), sequences.size(), seconds);
}

Schedule scheduleBest(std::span<const Estimates> sequences, const StepSeconds &seconds) {
  const std::vector<Slot> slots = inOrderOfSurvival(sequences);
  return take(slots, bestCount(slots, sequences.size(), seconds, false), sequences.size(), seconds);
}

Schedule scheduleBudget(std::span<const Estimates> sequences, int32_t budget, const StepSeconds &seconds) {
  const std::vector<Slot> slots = inOrderOfSurvival(sequences);
  const size_t count = std::min({size_t(std::max(budget, 0)), slots.size(), seconds.size() - 1});
  return take(slots, count, sequences.size(), seconds);
}

StepSeconds convexHull(const StepSeconds &seconds) {
  std::vector<size_t> corners;
  const auto isAbove = [&](size_t a, size_t b, size_t c) { // b over the line from a to c
    return (seconds[b] - seconds[a]) * double(c - a) >= (seconds[c] - seconds[a]) * double(b - a);
  };
  for (size_t n = 0; n < seconds.size(); ++n) {
    while (corners.size() > 1 && isAbove(corners[corners.size() - 2], corners.back(), n))
      corners.pop_back();
    corners.push_back(n);
  }
  StepSeconds hull = seconds;
  for (size_t i = 1; i < corners.size(); ++i) {
    const size_t from = corners[i - 1], to = corners[i];
    for (size_t n = from + 1; n < to; ++n)
      hull[n] = seconds[from] + (seconds[to] - seconds[from]) * double(n - from) / double(to - from);
  }
  return hull;
}

} // namespace dspark::llm
