// What all traces of one session share.
#pragma once
#include "kernels/common/isa.h"
#include "planning/CostModel.h"
#include "runtime/executor/Profile.h"
#include "runtime/executor/Program.h"
#include "runtime/executor/RecordObserver.h"
#include "runtime/executor/SessionDevices.h"
#include "runtime/executor/ThreadPool.h"
#include "runtime/memory/RunStrings.h"
#include <array>
#include <deque>

namespace dspark {

struct Context {
  Context(const Program &program, int threads, uint64_t memoryLimit, Isa cap, bool nativeCode)
      : program(program), cap(cap), nativeCode(nativeCode), pool(threads), budget(memoryLimit),
        threadScratch(budget), sharedScratch(budget), strings(budget) {}

  /// The arena of traces at that loop depth. An inner trace runs while the outer one's tensors are alive.
  Arena &arena(int depth) {
    while (int(arenas.size()) <= depth)
      arenas.emplace_back(budget);
    return arenas[size_t(depth)];
  }
  /// Makes room for a record's scratch memory.
  Status ensureScratch(uint64_t perThread, uint64_t shared) {
    perThread = (perThread + 63) / 64 * 64;
    if (perThread > scratchStride) {
      if (perThread > budget.limit())
        return budget.take(perThread, "scratch memory");
      DSPARK_RETURN_IF_ERROR(threadScratch.ensure(perThread * uint64_t(pool.threads()), "scratch memory"));
      scratchStride = perThread;
    }
    return sharedScratch.ensure(shared, "scratch memory");
  }

  const Program &program;
  Isa cap;
  bool nativeCode;
  ThreadPool pool;
  MemoryBudget budget;
  std::deque<Arena> arenas;
  Block threadScratch, sharedScratch;
  RunStrings strings;
  uint64_t scratchStride = 0;
  uint64_t clock = 0; // counts continuation look-ups, for evicting the one used longest ago
  int liveSegments = 0;
  Profile *profile = nullptr; // null: not measured
  RecordObserver *observer = nullptr;
  bool isSerial = false; // this run takes the calling thread only
  SessionDevices devices;
  Placement placement;                        // of what is traced next
  std::vector<double> *regionTimes = nullptr; // by region, added to by each run; null: not measured
  double *adaptSeconds = nullptr;             // what adapting takes is added to it; null: not measured
  std::vector<char> serialRegions;            // by region, 1: on the calling thread only; empty: none
  std::array<double, 2> slowdown{1, 1};       // of one thread and of all, with virtual time
  const CostModel *timeModel = nullptr;       // virtual time: what the CPU does takes what this predicts
};

} // namespace dspark
