// Where to run a bound plan, as a problem for planning/Assignment.h. Units are steps or regions; unit 0 is
// what must stay on the CPU: the caller, branches, loops.
#pragma once
#include "planning/Assignment.h"
#include "runtime/executor/SessionDevices.h"

namespace dspark {

struct BoundPlan;

inline constexpr double kUnlimitedBytes = 1e18; // of the CPU

/// Units numbered from 1 by `unitOfStep` (of the plan's body; 0: must stay on the CPU). Variants of units 1..
/// are left to the caller; flows and links are filled in, and devices work beside each other. Devices are the
/// plan's, those that are not there have free links and no memory.
AssignmentProblem placementProblem(const Program &program, const SessionDevices &devices,
                                   const BoundPlan &bound, const std::vector<int> &unitOfStep, int units);

/// The index in the plan's body, or -1 for a step of a branch or loop.
int bodyIndex(const Program &program, const StepInfo &step);

} // namespace dspark
