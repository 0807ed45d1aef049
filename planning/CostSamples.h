// Measured calls as JSON: what `dspark-rt --bench --json` reports per step and `dspark-bench` fits.
#pragma once
#include "planning/CostFit.h"
#include "runtime/base/Status.h"
#include <nlohmann/json_fwd.hpp>

namespace dspark {

nlohmann::json sampleJson(const CostSample &sample);

Status writeSamples(const std::string &path, const std::vector<CostSample> &samples);
/// The samples under "cost_samples" of a report's file; CorruptFile names the entry that is wrong.
StatusOr<std::vector<CostSample>> readSamples(const std::string &path);

} // namespace dspark
