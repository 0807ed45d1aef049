#include "runtime/adapt/CpuCanary.h"
#include <algorithm>
#include <chrono>

namespace dspark {
namespace {

// About ten microseconds of dependent arithmetic per tile; a tile function of ThreadPool.
void spin(void *, uint32_t begin, uint32_t end, int) {
  volatile double sink = 0;
  for (uint32_t tile = begin; tile < end; ++tile) {
    double x = 1;
    for (int i = 0; i < 2500; ++i)
      x = x * 0.999 + 0.001;
    sink = x;
  }
  (void)sink;
}

constexpr int kRepeats = 8; // of which the fastest is usual
constexpr uint32_t kTilesAThread = 4;

} // namespace

CpuCanary::CpuCanary(ThreadPool &pool) : pool(pool) {
  for (bool isParallel : {false, true}) {
    double &least = usual[size_t(isParallel)] = seconds(isParallel);
    for (int i = 0; i < kRepeats; ++i)
      least = std::min(least, seconds(isParallel));
  }
}

double CpuCanary::slowdown(bool isParallel) { return seconds(isParallel) / usual[size_t(isParallel)]; }

double CpuCanary::seconds(bool isParallel) {
  if (isParallel)
    pool.beginRun();
  auto start = std::chrono::steady_clock::now();
  if (isParallel)
    pool.run(uint32_t(pool.threads()) * kTilesAThread, spin, nullptr);
  else
    spin(nullptr, 0, kTilesAThread, 0);
  std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  if (isParallel)
    pool.endRun();
  return taken.count();
}

} // namespace dspark
