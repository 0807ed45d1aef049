// What --explain prints of a precision search.
#pragma once
#include "tools/dspark-compile/PrecisionSearch.h"
#include <nlohmann/json.hpp>

namespace dspark {

/// A row per region: nodes, sizes, device, precision, kernel, measured and predicted milliseconds, error, and
/// the best rejected alternative; then the errors and times of the whole. `machine` names the profile.
std::string explainTable(const PrecisionResult &result, const std::string &machine);
nlohmann::json explainJson(const PrecisionResult &result, const std::string &machine);
/// One line, also without --explain.
std::string precisionSummary(const PrecisionResult &result);

} // namespace dspark
