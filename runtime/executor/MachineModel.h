// What sessions predict with.
#pragma once
#include "planning/CostModel.h"

namespace dspark {

/// The profile of this machine, read once per process. One that cannot be used costs a few runs of
/// adaptation, no more.
const CostModel &modelOfThisMachine();

} // namespace dspark
