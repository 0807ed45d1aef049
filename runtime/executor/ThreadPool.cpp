#include "runtime/executor/ThreadPool.h"
#include "runtime/executor/CpuLimits.h"
#include <algorithm>
#include <chrono>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace dspark {
namespace {

constexpr uint32_t kOpen = 1u << 31;
// Waking a thread takes 5 us, on virtual machines 50 us, as its CPU may have been halted. So threads wait
// awake for longer than most steps that one thread computes, and for a run with little parallel work not to
// the end.
constexpr std::chrono::microseconds kAwake(200);
constexpr int kPauses = 64; // between two looks at the clock: 1 to 3 us
// For the last tiles of a job, until the CPU is offered to others.
constexpr int kSpins = 1000;

void pause() { __builtin_ia32_pause(); }

void futexWait(std::atomic<uint32_t> &word, uint32_t expected) {
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}
void futexWakeAll(std::atomic<uint32_t> &word) {
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), FUTEX_WAKE_PRIVATE, INT32_MAX, nullptr, nullptr, 0);
}

void pin(std::thread &thread, int cpu) {
  cpu_set_t *set = CPU_ALLOC(size_t(cpu) + 1);
  size_t bytes = CPU_ALLOC_SIZE(size_t(cpu) + 1);
  CPU_ZERO_S(bytes, set);
  CPU_SET_S(size_t(cpu), bytes, set);
  pthread_setaffinity_np(thread.native_handle(), bytes, set); // only an optimisation: may be forbidden
  CPU_FREE(set);
}

} // namespace

ThreadPool::ThreadPool(int threads) : count(std::max(1, threads)), slabs(new Slab[size_t(count)]) {
  std::vector<int> cpus = allowedCpus();
  for (int i = 1; i < count; ++i)
    workers.emplace_back([this, i] { work(i); });
  if (int(cpus.size()) != count || count == 1)
    return;
  callersCpu = cpus[0];
  pinnedTo.assign(cpus.begin() + 1, cpus.end());
  for (size_t i = 0; i < workers.size(); ++i)
    pin(workers[i], pinnedTo[i]);
}

// The caller is not pinned, and the CPU it happens to be on is kept by it as long as it runs. A worker that
// had to share that CPU would halve the speed of the run.
void ThreadPool::beginRun() {
  if (callersCpu >= 0)
    if (int now = sched_getcpu(); now != callersCpu)
      if (auto here = std::find(pinnedTo.begin(), pinnedTo.end(), now); here != pinnedTo.end()) {
        pin(workers[size_t(here - pinnedTo.begin())], callersCpu);
        std::swap(*here, callersCpu);
      }
  inRun.store(true, std::memory_order_relaxed);
}

ThreadPool::~ThreadPool() {
  stopping.store(true);
  epoch.fetch_add(1);
  futexWakeAll(epoch);
  for (std::thread &worker : workers)
    worker.join();
}

void ThreadPool::run(uint32_t tiles, TileFn fn, void *context) {
  if (count == 1 || tiles <= 1) {
    if (tiles > 0)
      fn(context, 0, tiles, 0);
    return;
  }
  // Eight helpings per slab: little enough counting, little enough left over at the end.
  job = {fn, context, std::max(1u, tiles / uint32_t(count) / 8)};
  for (int i = 0; i < count; ++i) {
    slabs[size_t(i)].next.store(uint32_t(uint64_t(tiles) * uint64_t(i) / uint64_t(count)),
                                std::memory_order_relaxed);
    slabs[size_t(i)].end = uint32_t(uint64_t(tiles) * uint64_t(i + 1) / uint64_t(count));
  }
  gate.store(kOpen, std::memory_order_release);
  epoch.fetch_add(1); // sequentially consistent, as is `sleepers`: one of the two sides sees the other
  if (sleepers.load() > 0)
    futexWakeAll(epoch);
  workOn(0);
  // All tiles are taken. Nobody may come in any more, and whoever is inside is finishing its last tiles.
  gate.fetch_and(~kOpen, std::memory_order_acquire);
  for (int spins = 0; gate.load(std::memory_order_acquire) != 0; ++spins)
    spins < kSpins ? pause() : void(sched_yield());
}

void ThreadPool::workOn(int thread) {
  for (int i = 0; i < count; ++i) {
    Slab &slab = slabs[size_t((thread + i) % count)];
    // Checked before adding, so the counter stays within a few chunks of the end and never wraps.
    while (slab.next.load(std::memory_order_relaxed) < slab.end) {
      uint32_t begin = slab.next.fetch_add(job.chunk, std::memory_order_relaxed);
      if (begin >= slab.end)
        break;
      job.fn(job.context, begin, begin + std::min(job.chunk, slab.end - begin), thread);
    }
  }
}

bool ThreadPool::enter() {
  uint32_t now = gate.load(std::memory_order_relaxed);
  while (now & kOpen)
    if (gate.compare_exchange_weak(now, now + 1, std::memory_order_acquire, std::memory_order_relaxed))
      return true;
  return false;
}

bool ThreadPool::waitForJob(uint32_t seen) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + kAwake;
  for (int i = 1; inRun.load(std::memory_order_relaxed); ++i) {
    if (epoch.load(std::memory_order_relaxed) != seen)
      return !stopping.load();
    pause();
    if (i % kPauses == 0 && Clock::now() >= end)
      break;
  }
  sleepers.fetch_add(1);
  while (epoch.load() == seen)
    futexWait(epoch, seen);
  sleepers.fetch_sub(1);
  return !stopping.load();
}

void ThreadPool::work(int thread) {
  for (uint32_t seen = 0; waitForJob(seen);) {
    seen = epoch.load();
    if (enter()) {
      workOn(thread);
      gate.fetch_sub(1, std::memory_order_release);
    }
  }
}

} // namespace dspark
