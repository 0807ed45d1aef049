#include "tools/dspark-bench/Probe.h"
#include "bench/kernels/bandwidth.h"
#include "bench/kernels/peak.h"
#include "runtime/executor/ThreadPool.h"
#include <algorithm>
#include <chrono>
#include <ctime>
#include <memory>

namespace dspark {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// What this thread has had of a core, whatever others took away.
double ownTime() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

const bench::BandwidthLoops &loops() {
  Isa isa = vectorIsa(machineIsa());
  return isa == Isa::Avx512 ? bench::kBandwidthAvx512
         : isa == Isa::Avx2 ? bench::kBandwidthAvx2
                            : bench::kBandwidthBaseline;
}

// Every thread reads a buffer of its own; the fastest of several rounds.
class Readers {
public:
  Readers(int threads, int64_t bytes) : pool(threads), bytes(bytes) {
    for (int i = 0; i < threads; ++i)
      buffers.emplace_back(size_t(bytes / 4) + 16, 1.0f);
  }
  double bytesPerSecond() {
    repeats = std::max<int64_t>(1, (1 << 20) / bytes);
    pool.beginRun();
    const auto clock = buffers.size() == 1 ? ownTime : now;
    double least = 1e300;
    for (int round = 0; round < 6; ++round) {
      double start = clock();
      pool.run(uint32_t(buffers.size()), readTiles, this);
      least = std::min(least, clock() - start);
    }
    pool.endRun();
    return double(bytes) * double(repeats) * double(buffers.size()) / least;
  }

private:
  static void readTiles(void *opaque, uint32_t begin, uint32_t end, int) {
    auto &self = *static_cast<Readers *>(opaque);
    for (uint32_t i = begin; i < end; ++i)
      for (int64_t r = 0; r < self.repeats; ++r) {
        volatile float sink = loops().read(self.buffers[i].data(), self.bytes);
        (void)sink;
      }
  }
  ThreadPool pool;
  int64_t bytes, repeats = 1;
  std::vector<std::vector<float>> buffers;
};

double best(auto measure) {
  double most = 0;
  for (int i = 0; i < 8; ++i)
    most = std::max(most, measure());
  return most;
}

// Seconds of a pool's job that does nothing.
double barrierSeconds(int threads) {
  ThreadPool pool(threads);
  auto nothing = [](void *, uint32_t, uint32_t, int) {};
  double least = 1e300;
  pool.beginRun();
  for (int round = 0; round < 20; ++round) {
    double start = now();
    for (int i = 0; i < 20; ++i)
      pool.run(uint32_t(threads), nothing, nullptr);
    least = std::min(least, (now() - start) / 20);
  }
  pool.endRun();
  return least;
}

} // namespace

CostModel probeLimits(const MachineFacts &machine, int threads) {
  CostModel model;
  model.threads = threads;
  for (int i = 0; i <= int(machineIsa()); ++i) {
    Isa isa = Isa(i);
    model.peaks[std::string(isaName(isa))] = {best([&] { return bench::multiplyAddPeak(isa); }),
                                              best([&] { return bench::integerPeak(isa, true); })};
  }
  constexpr const char *kNames[] = {"L1", "L2", "L3"};
  std::vector<MemoryLevel> levels;
  for (size_t i = 0; i < machine.caches.size() && i < 3; ++i)
    levels.push_back({kNames[i], double(machine.caches[i]), 0, 0});
  // A last level that is shared with others: no more than half of it can be counted on.
  if (levels.size() == 3)
    levels[2].bytes /= 2;
  levels.push_back({"memory", 1e18, 0, 0});
  for (size_t i = 0; i < levels.size(); ++i) {
    // Half of what the level holds; from memory, four times what the last cache does.
    double size = i + 1 < levels.size() ? levels[i].bytes / 2 : i > 0 ? levels[i - 1].bytes * 4 : 64e6;
    int64_t bytes = int64_t(std::min(size, 128e6)) / 4096 * 4096;
    levels[i].onePerSecond = Readers(1, bytes).bytesPerSecond();
    levels[i].allPerSecond = threads == 1
                                 ? levels[i].onePerSecond
                                 : std::max(levels[i].onePerSecond, Readers(threads, bytes).bytesPerSecond());
  }
  model.levels = std::move(levels);
  model.launch = barrierSeconds(1);
  model.barrier = threads > 1 ? std::max(0.0, barrierSeconds(threads) - model.launch) : 0;
  return model;
}

} // namespace dspark
