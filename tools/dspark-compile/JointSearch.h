// Precision and device together. The search for precisions knows the CPU's times only, and where a device is
// best at another form than the CPU, or can do no other, its choice is the wrong one to place. So each form
// is tried on everything that may have it, as far as the bound allows; what does not go to a device then
// keeps the CPU's choice, and the plan that is predicted to end first is taken.
#pragma once
#include "tools/dspark-compile/PlacementSearch.h"
#include "tools/dspark-compile/Precision.h"

namespace dspark {

struct JointRequest {
  CompileOptions options; // the plan at options.output is the one with `chosen`
  PrecisionOptions precision;
  PlacementRequest placement;
};

/// Replaces plan and choices by better ones, if there are any. Errors of plug-ins name them.
Status searchJointly(const JointRequest &request, const MachineProfile &machine, PrecisionResult &chosen);

} // namespace dspark
