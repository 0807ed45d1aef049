// The runtime's own threads. The calling thread takes part in every job; the others spin for work only while
// a run is going on and sleep on a futex otherwise, so an idle session costs nothing.
//
// A job is cut into one slab of tiles per thread. Each thread first takes tiles from its own slab, which
// keeps a tensor's parts in the caches where they were made, then from the others', so nobody waits for a
// thread that woke up late.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace dspark {

class ThreadPool {
public:
  /// Starts threads - 1 threads. Where the pool is as large as the affinity mask each is pinned to a CPU that
  /// the caller of a run is not on; a smaller pool is not, as it would share those CPUs with every other
  /// small pool and leave the rest idle.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  int threads() const { return count; }

  /// Around a series of jobs, from one thread at a time: between them, waiting threads spin.
  void beginRun();
  void endRun() { inRun.store(false, std::memory_order_relaxed); }

  /// Calls fn(context, begin, end, thread) for disjoint ranges that cover [0, tiles), `thread` being 0 (the
  /// caller) to threads() - 1, and returns when all calls have.
  using TileFn = void (*)(void *context, uint32_t begin, uint32_t end, int thread);
  void run(uint32_t tiles, TileFn fn, void *context);

private:
  struct alignas(64) Slab {
    std::atomic<uint32_t> next{0};
    uint32_t end = 0;
  };
  struct Job {
    TileFn fn = nullptr;
    void *context = nullptr;
    uint32_t chunk = 1;
  };
  void work(int thread);
  void workOn(int thread);
  bool waitForJob(uint32_t seen);
  bool enter();

  int count;
  std::unique_ptr<Slab[]> slabs;
  Job job;                                    // written while the gate is shut and nobody is inside
  alignas(64) std::atomic<uint32_t> epoch{0}; // of jobs; the futex
  alignas(64) std::atomic<uint32_t> gate{0};  // kOpen, and how many threads are inside
  alignas(64) std::atomic<int> sleepers{0};
  std::atomic<bool> inRun{false}, stopping{false};
  std::vector<std::thread> workers;
  std::vector<int> pinnedTo; // CPU of each worker, if they are pinned
  int callersCpu = -1;       // the CPU that none of them is pinned to
};

} // namespace dspark
