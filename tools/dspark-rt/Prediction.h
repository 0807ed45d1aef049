// What the cost model predicts for each step, beside what was measured.
#pragma once
#include "planning/MachineProfile.h"
#include "runtime/executor/Session.h"
#include <nlohmann/json.hpp>

namespace dspark {

/// {"steps": [...], "regions": [...], both most expensive first, "cost_samples": [...], "summary": {...}} for
/// the steps that shapes alone bind and that ran once or more per run; `profile` is that of later runs of
/// `session` with the same shapes. A step in no region of the plan is a region of its own. What devices run,
/// they predict and measure.
nlohmann::json predictionReport(const BoundPlan &bound, const Profile &profile, const MachineProfile &machine,
                                const Session &session);
/// At most `rows` steps, then the summary.
void printPrediction(const nlohmann::json &report, size_t rows);

} // namespace dspark
