#include "runtime/format/ArenaPlan.h"
#include <algorithm>
#include <numeric>

namespace dspark {
namespace {

int64_t aligned(int64_t bytes) { return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment; }

// Placements tried after the fixed orders, divided by the number of buffers: bounds planning to some tens of
// milliseconds.
// The lists of live buffers per step may have so many entries in all; beyond, buffers are compared one by
// one.
constexpr int64_t kMaxListed = 8 << 20;
constexpr size_t kImprovementWork = 100'000, kMaxImprovements = 200;

class Planner {
public:
  explicit Planner(std::vector<ArenaBuffer> &buffers)
      : buffers(buffers), offsets(buffers.size()), stamp(buffers.size()) {
    for (const ArenaBuffer &buffer : buffers) {
      begin = std::min(begin, buffer.first);
      end = std::max(end, buffer.last + 1);
    }
    int64_t listed = 0;
    liveBytes.resize(size_t(end - begin) + 1);
    for (const ArenaBuffer &buffer : buffers) {
      listed += buffer.last - buffer.first + 1;
      liveBytes[size_t(buffer.first - begin)] += aligned(buffer.bytes);
      liveBytes[size_t(buffer.last + 1 - begin)] -= aligned(buffer.bytes);
    }
    std::partial_sum(liveBytes.begin(), liveBytes.end(), liveBytes.begin());
    if (listed > kMaxListed)
      return;
    alive.resize(size_t(end - begin));
    for (size_t i = 0; i < buffers.size(); ++i)
      for (int step = buffers[i].first; step <= buffers[i].last; ++step)
        alive[size_t(step - begin)].push_back(i);
  }

  ArenaPlan run() {
    ArenaPlan plan;
    plan.lowerBound = *std::max_element(liveBytes.begin(), liveBytes.end());
    std::vector<size_t> best;
    auto consider = [&](std::vector<size_t> order) {
      if (best.empty() || plan.bytes > plan.lowerBound)
        if (int64_t bytes = placeAll(order); best.empty() || bytes < plan.bytes) {
          plan.bytes = bytes;
          best = std::move(order);
          keep();
        }
    };
    consider(sorted([&](size_t a, size_t b) { return buffers[a].bytes > buffers[b].bytes; }));
    if (alive.empty())
      return plan;
    consider(byBreadth());
    consider(sorted([&](size_t a, size_t b) { return area(a) > area(b); }));
    consider(sorted([&](size_t a, size_t b) { return buffers[a].first < buffers[b].first; }));
    improve(plan, best);
    return plan;
  }

private:
  double area(size_t i) const { return double(buffers[i].bytes) * (buffers[i].last - buffers[i].first + 1); }
  void keep() { result = offsets; }

  template <typename Before> std::vector<size_t> sorted(Before before) const {
    std::vector<size_t> order(buffers.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), before);
    return order;
  }
  std::vector<size_t> byBreadth();
  int64_t placeAll(const std::vector<size_t> &order);
  int64_t tightestGap(size_t index);
  void improve(ArenaPlan &plan, std::vector<size_t> &order);

  std::vector<ArenaBuffer> &buffers;
  std::vector<int64_t> offsets;           // of the placement being made; -1: not placed
  std::vector<int64_t> result;            // of the best one
  std::vector<std::vector<size_t>> alive; // buffers per step; empty where that would be too many
  std::vector<int64_t> liveBytes;
  int begin = 0, end = 0;

  struct Taken {
    int64_t begin, end;
  };
  std::vector<Taken> taken;
  std::vector<size_t> placed;  // by offset; only kept without `alive`
  std::vector<uint64_t> stamp; // the last look-up that a buffer was seen in
  uint64_t lookUp = 0;

public:
  const std::vector<int64_t> &best() const { return result; }
};

// Steps with the largest live sets first, within one the largest buffers first.
std::vector<size_t> Planner::byBreadth() {
  std::vector<size_t> steps(alive.size()), order; // the last entry of liveBytes is after all steps
  std::iota(steps.begin(), steps.end(), 0);
  std::stable_sort(steps.begin(), steps.end(),
                   [&](size_t a, size_t b) { return liveBytes[a] > liveBytes[b]; });
  std::vector<bool> isListed(buffers.size(), false);
  for (size_t step : steps) {
    std::vector<size_t> set = alive[step];
    std::stable_sort(set.begin(), set.end(),
                     [&](size_t a, size_t b) { return buffers[a].bytes > buffers[b].bytes; });
    for (size_t i : set)
      if (!isListed[i]) {
        isListed[i] = true;
        order.push_back(i);
      }
  }
  return order;
}

// The start of the tightest gap among the placed buffers that are alive with this one, else the end of them.
int64_t Planner::tightestGap(size_t index) {
  const ArenaBuffer &buffer = buffers[index];
  ++lookUp;
  taken.clear();
  auto take = [&](size_t other) {
    if (offsets[other] >= 0 && stamp[other] != lookUp && buffers[other].bytes > 0) {
      stamp[other] = lookUp;
      taken.push_back({offsets[other], offsets[other] + aligned(buffers[other].bytes)});
    }
  };
  if (alive.empty()) {
    for (size_t other : placed)
      if (buffers[other].first <= buffer.last && buffer.first <= buffers[other].last)
        take(other);
  } else {
    for (int step = buffer.first; step <= buffer.last; ++step)
      std::for_each(alive[size_t(step - begin)].begin(), alive[size_t(step - begin)].end(), take);
    std::sort(taken.begin(), taken.end(), [](const Taken &a, const Taken &b) { return a.begin < b.begin; });
  }
  int64_t bytes = aligned(buffer.bytes), free = 0, best = -1, bestGap = INT64_MAX;
  for (const Taken &range : taken) {
    if (int64_t gap = range.begin - free; gap >= bytes && gap < bestGap) {
      best = free;
      bestGap = gap;
    }
    free = std::max(free, range.end);
  }
  return best >= 0 ? best : free;
}

int64_t Planner::placeAll(const std::vector<size_t> &order) {
  int64_t bytes = 0;
  placed.clear();
  auto place = [&](size_t i, int64_t offset) {
    offsets[i] = offset;
    bytes = std::max(bytes, offset + aligned(buffers[i].bytes));
    if (alive.empty())
      placed.insert(std::upper_bound(placed.begin(), placed.end(), offset,
                                     [&](int64_t at, size_t other) { return at < offsets[other]; }),
                    i);
  };
  std::fill(offsets.begin(), offsets.end(), -1);
  for (size_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].offset >= 0)
      place(i, buffers[i].offset);
  for (size_t i : order)
    if (offsets[i] < 0)
      place(i, tightestGap(i));
  return bytes;
}

// Whoever reaches the arena's end came too late: it moves to the front, and all is placed again.
void Planner::improve(ArenaPlan &plan, std::vector<size_t> &order) {
  if (buffers.empty() || plan.bytes <= plan.lowerBound)
    return;
  size_t tries = std::min(kMaxImprovements, kImprovementWork / buffers.size());
  int64_t reached = placeAll(order);
  for (size_t t = 0; t < tries && plan.bytes > plan.lowerBound; ++t) {
    auto last = std::find_if(order.begin(), order.end(), [&](size_t i) {
      return buffers[i].offset < 0 && offsets[i] + aligned(buffers[i].bytes) == reached;
    });
    if (last == order.end() || last == order.begin())
      return;
    std::rotate(order.begin(), last, last + 1);
    reached = placeAll(order);
    if (reached < plan.bytes) {
      plan.bytes = reached;
      keep();
    }
  }
}

} // namespace

ArenaPlan planArena(std::vector<ArenaBuffer> &buffers) {
  if (buffers.empty())
    return {};
  Planner planner(buffers);
  ArenaPlan plan = planner.run();
  for (size_t i = 0; i < buffers.size(); ++i)
    buffers[i].offset = planner.best()[i];
  return plan;
}

} // namespace dspark
