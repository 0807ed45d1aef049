// The decisions of a compile as MLIR optimization remarks, for tools that read those.
#pragma once
#include "runtime/base/Status.h"
#include "tools/dspark-compile/PlanDecisions.h"

namespace dspark {

/// A YAML file with a remark "Decided" (passed) per step and a remark "Rejected" (missed) where there was an
/// alternative.
Status writeRemarks(const std::string &path, const std::string &model, const PlanDecisions &decisions);

} // namespace dspark
