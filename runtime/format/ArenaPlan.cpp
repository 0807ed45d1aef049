#include "runtime/format/ArenaPlan.h"
#include <algorithm>
#include <map>
#include <numeric>

namespace dspark {
namespace {

int64_t aligned(int64_t bytes) { return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment; }

bool overlap(const ArenaBuffer &a, const ArenaBuffer &b) { return a.first <= b.last && b.first <= a.last; }

int64_t largestLiveSet(const std::vector<ArenaBuffer> &buffers) {
  std::map<int64_t, int64_t> change; // at a step: bytes born minus bytes that died before it
  for (const ArenaBuffer &buffer : buffers) {
    change[buffer.first] += aligned(buffer.bytes);
    change[int64_t(buffer.last) + 1] -= aligned(buffer.bytes);
  }
  int64_t live = 0, most = 0;
  for (auto [step, bytes] : change)
    most = std::max(most, live += bytes);
  return most;
}

struct Taken {
  int64_t begin, end;
};

// The start of the tightest gap between `taken` (sorted) that holds `bytes`, else the end of all.
int64_t tightestGap(const std::vector<Taken> &taken, int64_t bytes) {
  int64_t end = 0, best = -1, bestSize = INT64_MAX;
  for (const Taken &range : taken) {
    if (int64_t gap = range.begin - end; gap >= bytes && gap < bestSize) {
      best = end;
      bestSize = gap;
    }
    end = std::max(end, range.end);
  }
  return best >= 0 ? best : end;
}

} // namespace

ArenaPlan planArena(std::vector<ArenaBuffer> &buffers) {
  ArenaPlan plan;
  plan.lowerBound = largestLiveSet(buffers);
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    bool fixedA = buffers[a].offset >= 0, fixedB = buffers[b].offset >= 0;
    return fixedA != fixedB ? fixedA : buffers[a].bytes > buffers[b].bytes;
  });
  std::vector<size_t> placed; // sorted by offset
  std::vector<Taken> taken;
  for (size_t index : order) {
    ArenaBuffer &buffer = buffers[index];
    int64_t bytes = aligned(buffer.bytes);
    if (buffer.offset < 0) {
      taken.clear();
      for (size_t other : placed)
        if (overlap(buffers[other], buffer))
          taken.push_back({buffers[other].offset, buffers[other].offset + aligned(buffers[other].bytes)});
      buffer.offset = tightestGap(taken, bytes);
    }
    plan.bytes = std::max(plan.bytes, buffer.offset + bytes);
    if (bytes > 0)
      placed.insert(std::upper_bound(placed.begin(), placed.end(), buffer.offset,
                                     [&](int64_t offset, size_t i) { return offset < buffers[i].offset; }),
                    index);
  }
  return plan;
}

} // namespace dspark
