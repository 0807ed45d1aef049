// Changes what a finished plan says about its steps, without compiling the model again.
#pragma once
#include "runtime/format/PlanFile.h"

namespace dspark {

/// Writes the plan at `path` anew: `edit` changes its PLAN section, all others are copied as they are.
/// On failure the file is as it was.
Status rewritePlan(const std::string &path, const std::function<void(fb::PlanT &)> &edit);

} // namespace dspark
