// dspark-bench compare: two plans of one interface, run by turns on the same inputs.
#pragma once
#include "runtime/executor/Session.h"
#include <map>
#include <string>

namespace dspark {

struct PlanComparison {
  std::string first, second; // plans
  std::map<std::string, int64_t> dims;
  std::string archive; // FILE.npz of inputs; "": random ones
  double seconds = 3;  // of measuring
  SessionOptions session;
  bool isJson = false;
};

/// Prints both medians, the ratio of second to first with its 95 % bootstrap interval, and how far apart the
/// outputs are. InvalidArgument where the plans' inputs or outputs differ.
Status comparePlans(const PlanComparison &comparison);

struct RatioInterval {
  double ratio, low, high;
};
/// The median of second[i] / first[i], and between which values 95 % of the medians of resampled pairs lie.
/// Deterministic.
RatioInterval ratioInterval(const std::vector<double> &first, const std::vector<double> &second);

} // namespace dspark
