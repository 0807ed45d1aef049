// The experiments of bench_adaptation, each with the limit that it must keep.
#pragma once
#include "bench/devices/adaptation/Machine.h"

namespace dspark::bench {

/// Prints what was found; false if a limit was not kept.
StatusOr<bool> runExperiments(const MachineOptions &options, int seeds);

} // namespace dspark::bench
