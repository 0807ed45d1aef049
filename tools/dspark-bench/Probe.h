// What a machine can do at most: arithmetic peaks, bandwidth per cache level and thread count, the cost of
// handing work to the thread pool.
#pragma once
#include "planning/CostModel.h"
#include "planning/MachineProfile.h"

namespace dspark {

/// Everything of the model but the kernels' terms, in well under a second.
CostModel probeLimits(const MachineFacts &machine, int threads);

} // namespace dspark
