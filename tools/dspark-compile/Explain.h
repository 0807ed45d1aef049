// What --explain prints of a compile's decisions.
#pragma once
#include "tools/dspark-compile/PlanDecisions.h"
#include "tools/dspark-compile/PrecisionSearch.h"
#include <nlohmann/json.hpp>

namespace dspark {

/// Fills in what the search for precisions has found for the steps that are products.
void addPrecisions(PlanDecisions &decisions, const PrecisionResult &result);

/// A row per step: region, nodes, device, precision, kernel, predicted and measured milliseconds, error, the
/// best rejected alternative and why; then devices, what crosses, and the times of the whole.
std::string explainTable(const PlanDecisions &decisions);
nlohmann::json explainJson(const PlanDecisions &decisions);

/// A page with a picture of the partitioned graph, of the facts of explainJson(): one file, nothing fetched
/// from elsewhere.
std::string explainPage(nlohmann::json facts, const std::string &model);

} // namespace dspark
