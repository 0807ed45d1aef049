#include "runtime/adapt/ThreadChoice.h"

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

ThreadChoice::ThreadChoice(ThreadPool &pool) : canary(pool), adapter(problemOf(1, 1)) {}

void ThreadChoice::seed(int64_t bucket, double oneThread, double allThreads) {
  adapter.seed(bucket, problemOf(oneThread, allThreads));
  known[bucket] = true;
}

bool ThreadChoice::isSerial(int64_t bucket) {
  if (std::optional<int> resource = adapter.canary())
    adapter.reportCanary(*resource, canary.slowdown(*resource == kAll));
  return adapter.next(bucket)[0] == kOne;
}

} // namespace dspark
