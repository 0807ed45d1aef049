#include "runtime/adapt/ThreadChoice.h"
#include "runtime/adapt/Spin.h"
#include <chrono>

namespace dspark {
namespace {

enum { kOne, kAll }; // variants, and the resources that they need

AssignmentProblem problemOf(double oneThread, double allThreads) {
  AssignmentProblem problem;
  problem.devices = 2;
  problem.transfers.resize(4);
  problem.regions = {{{{kOne, oneThread, 0, 0}, {kAll, allThreads, 0, 0}}}};
  return problem;
}

} // namespace

ThreadChoice::ThreadChoice(ThreadPool &pool) : pool(pool), adapter(problemOf(1, 1)) {
  for (int isParallel : {kOne, kAll}) {
    usual[size_t(isParallel)] = canarySeconds(isParallel);
    for (int i = 0; i < 8; ++i)
      usual[size_t(isParallel)] = std::min(usual[size_t(isParallel)], canarySeconds(isParallel));
  }
}

double ThreadChoice::canarySeconds(bool isParallel) {
  uint32_t tiles = uint32_t(pool.threads()) * 4;
  if (isParallel)
    pool.beginRun();
  auto start = std::chrono::steady_clock::now();
  if (isParallel)
    pool.run(tiles, spin, nullptr);
  else
    spin(nullptr, 0, 4, 0);
  std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  if (isParallel)
    pool.endRun();
  return taken.count();
}

void ThreadChoice::seed(int64_t bucket, double oneThread, double allThreads) {
  adapter.seed(bucket, problemOf(oneThread, allThreads));
  known[bucket] = true;
}

bool ThreadChoice::isSerial(int64_t bucket) {
  if (std::optional<int> resource = adapter.canary())
    adapter.reportCanary(*resource, canarySeconds(*resource == kAll) / usual[size_t(*resource)]);
  return adapter.next(bucket)[0] == kOne;
}

} // namespace dspark
