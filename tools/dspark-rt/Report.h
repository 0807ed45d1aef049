// What dspark-rt prints: as text, or gathered into one JSON object.
#pragma once
#include "runtime/executor/Session.h"
#include "tools/dspark-rt/Inputs.h"
#include <nlohmann/json.hpp>

namespace dspark {

/// Least, mean and largest of all numbers that are one, and a hash of all bytes.
nlohmann::json summarize(const TensorView &view, const std::string &name);
/// The same for each tensor of a value; that of a list is its "items".
nlohmann::json summarize(const OutputValue &value, const std::string &name);
nlohmann::json summarize(const BorrowedValue &value, const std::string &name);
std::string summaryLine(const nlohmann::json &summary);

struct BenchResult {
  std::vector<double> seconds; // per run, in the order they ran
};
nlohmann::json benchSummary(const BenchResult &bench);
std::string benchLine(const nlohmann::json &summary);

/// One entry per step and kernel, the most expensive first; times are per run.
nlohmann::json profileLines(const Profile &profile, int runs, double secondsPerRun);
void printProfile(const nlohmann::json &lines, double secondsPerRun);

/// A line of JSON per change.
Status writeAdaptLog(const std::string &path, const std::vector<AdaptEvent> &events);
/// A Chrome trace (chrome://tracing, Perfetto) of one run.
Status writeTrace(const std::string &path, const Profile &profile);

} // namespace dspark
