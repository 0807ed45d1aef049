// What --explain tells of a precision search.
#pragma once
#include "tools/dspark-compile/PrecisionSearch.h"
#include <nlohmann/json.hpp>

namespace dspark {

/// Regions with their variants, errors, sets and times; the plan's steps are shown by Explain.h.
nlohmann::json precisionJson(const PrecisionResult &result);
/// One line, also without --explain.
std::string precisionSummary(const PrecisionResult &result);

} // namespace dspark
