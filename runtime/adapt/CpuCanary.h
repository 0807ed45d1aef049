// A known amount of work for the CPU, with one thread and with all: how long it takes tells whether something
// else is running.
#pragma once
#include "runtime/executor/ThreadPool.h"
#include <array>

namespace dspark {

class CpuCanary {
public:
  /// Takes the usual times, in about a millisecond. The pool outlives this.
  explicit CpuCanary(ThreadPool &pool);
  /// Outside of runs: how many times as long as usual it takes now.
  double slowdown(bool isParallel);

private:
  double seconds(bool isParallel);

  ThreadPool &pool;
  std::array<double, 2> usual; // of one thread, of all
};

} // namespace dspark
