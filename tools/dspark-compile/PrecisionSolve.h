// The regions' choice of precision as the solver's problem (planning/Assignment.h).
#pragma once
#include "tools/dspark-compile/PrecisionRegions.h"

namespace dspark {

/// A variant must be faster by more than measurements differ.
inline constexpr double kLeastGain = 0.03;
/// A budget that has room for everything.
inline constexpr double kUnbounded = 1e300;

struct PrecisionRule {
  std::string only;          // a layout's beginning: every region that has such a form takes it
  std::vector<double> gains; // per region: what the outputs' error gains, in the metric's additive measure,
                             // per squared relative error of its own
};

/// Per region a variant, or -1 for f32: the fastest within the budget. A form that is not faster than f32,
/// with what making its bytes costs where nothing before it does, is not taken, whatever its bits.
///
/// Values between regions are f32 or bytes, as is cheapest: a region on bytes gives either; quantising costs
/// where floats become bytes, and where a value is read as both; a sum of bytes is a step of its own, where
/// one of floats is part of the product before it.
std::vector<int> solvePrecision(const std::vector<PrecisionRegion> &regions,
                                const std::vector<PrecisionValue> &values, const PrecisionRule &rule,
                                double budget);

/// Seconds of one pass through all regions, with what making bytes between them costs.
double secondsOf(const std::vector<PrecisionRegion> &regions, const std::vector<PrecisionValue> &values,
                 const std::vector<int> &choices);

} // namespace dspark
