// The calls that a probe measures: the kernels in which real models spend their time, over the shapes that
// such models have.
#pragma once
#include "tools/dspark-bench/KernelCase.h"

namespace dspark {

std::vector<KernelCase> sweepCases();

struct SweepResult {
  std::vector<CostSample> samples;
  /// How far apart the fastest calls of two passes are, relative: the median and the 90th percentile over the
  /// cases. On a quiet machine a few percent.
  double spread = 0, p90Spread = 0;
};
/// Each case in several passes over all of them, so that a disturbance hits few passes of a case; the fastest
/// call counts. `secondsPerTurn` is how long a case runs in one pass.
StatusOr<SweepResult> runSweep(const std::vector<KernelCase> &cases, Isa isa, int passes,
                               double secondsPerTurn);

} // namespace dspark
