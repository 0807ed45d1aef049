// Chooses per shape whether a run uses all threads of the pool or only the calling one: small shapes lose
// more to waking the others than they gain, and a neighbour that takes a core makes everybody wait for it.
// Results do not depend on the choice.
#pragma once
#include "runtime/adapt/Adapter.h"
#include "runtime/adapt/CpuCanary.h"
#include <utility>

namespace dspark {

class ThreadChoice {
public:
  /// The pool outlives this; both are used by the session's thread only.
  explicit ThreadChoice(ThreadPool &pool);

  bool knows(int64_t bucket) const { return known.contains(bucket); }
  /// Predicted seconds of a run with shapes of that bucket.
  void seed(int64_t bucket, double oneThread, double allThreads);
  /// Whether the next run takes the calling thread only. Runs a canary first if one is due.
  bool isSerial(int64_t bucket);
  void report(double seconds) { adapter.report({seconds}); }

  /// The changes so far, taken away.
  std::vector<AdaptEvent> takeEvents() { return std::exchange(adapter.events(), {}); }

private:
  CpuCanary canary;
  Adapter adapter;
  std::map<int64_t, bool> known;
};

} // namespace dspark
