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

/// How many leading slots give the most tokens per second.
size_t bestCount(std::span<const Slot> slots, size_t sequences, const StepSeconds &seconds) {
  double tokens = double(sequences), best = tokens / seconds[0];
  size_t bestCount = 0;
  for (size_t i = 0; i < slots.size() && i + 1 < seconds.size(); ++i) {
    tokens += slots[i].survival;
    const double rate = tokens / seconds[i + 1];
    if (rate > best) {
      best = rate;
      bestCount = i + 1;
    }
  }
  return bestCount;
}

/// Whether slot `next`, after `tokens` of those before it, pays: alone, or with slots after it that fall off
/// as forecast. Of the slots only `next` itself is looked at.
bool pays(const Slot &slot, size_t next, double tokens, const StepSeconds &seconds,
          std::span<const double> forecast) {
  const double rate = tokens / seconds[next];
  tokens += slot.survival;
  if (tokens / seconds[next + 1] > rate)
    return true;
  for (size_t i = next + 1; i < forecast.size() && i + 1 < seconds.size(); ++i) {
    tokens += slot.survival * (forecast[next] > 0 ? forecast[i] / forecast[next] : 0);
    if (tokens / seconds[i + 1] > rate)
      return true;
  }
  return false;
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

std::vector<double> inOrder(std::span<const Estimates> sequences) {
  std::vector<double> survivals;
  for (const Slot &slot : inOrderOfSurvival(sequences))
    survivals.push_back(slot.survival);
  return survivals;
}

Schedule scheduleEarlyStop(std::span<const Estimates> sequences, const StepSeconds &seconds,
                           std::span<const double> forecast) {
  const std::vector<Slot> slots = inOrderOfSurvival(sequences);
  double tokens = double(sequences.size());
  size_t count = 0;
  while (count < slots.size() && count + 1 < seconds.size() &&
         pays(slots[count], count, tokens, seconds, forecast))
    tokens += slots[count++].survival;
  return take(slots, count, sequences.size(), seconds);
}

Schedule scheduleBest(std::span<const Estimates> sequences, const StepSeconds &seconds) {
  const std::vector<Slot> slots = inOrderOfSurvival(sequences);
  return take(slots, bestCount(slots, sequences.size(), seconds), sequences.size(), seconds);
}

Schedule scheduleBudget(std::span<const Estimates> sequences, int32_t budget, const StepSeconds &seconds) {
  const std::vector<Slot> slots = inOrderOfSurvival(sequences);
  const size_t count = std::min({size_t(std::max(budget, 0)), slots.size(), seconds.size() - 1});
  return take(slots, count, sequences.size(), seconds);
}

} // namespace dspark::llm
