#include "tools/dspark-rt/Prediction.h"
#include "planning/CostSamples.h"
#include <algorithm>
#include <cstdio>

namespace dspark {

using nlohmann::json;

json predictionReport(const BoundPlan &bound, const Profile &profile, const MachineProfile &machine,
                      int threads) {
  double footprint = bound.constantBytes + double(bound.lowerBound);
  json report = {{"profile", machine.source}, {"steps", json::array()}, {"cost_samples", json::array()}};
  std::vector<double> predicted, measured;
  double predictedSum = 0, measuredSum = 0;
  size_t unknown = 0;
  for (const BoundStep &step : bound.steps) {
    auto line = profile.lines.find({step.step, step.kernel});
    if (line == profile.lines.end())
      continue;
    double seconds = machine.model.predict(step.cost, footprint, threads), found = line->second.least;
    bool isKnown = machine.model.termsOf(step.cost.key);
    unknown += !isKnown;
    report["steps"].push_back({{"step", step.step->index},
                               {"node", step.step->location},
                               {"kernel", step.cost.key},
                               {"predicted_s", seconds},
                               {"measured_s", found},
                               {"has_terms", isKnown}});
    if (threads == 1)
      report["cost_samples"].push_back(sampleJson({step.cost, footprint, found}));
    predicted.push_back(seconds);
    measured.push_back(found);
    predictedSum += seconds;
    measuredSum += found;
  }
  std::sort(report["steps"].begin(), report["steps"].end(), [](const json &a, const json &b) {
    return a["measured_s"].get<double>() > b["measured_s"].get<double>();
  });
  Accuracy accuracy = accuracyOf(predicted, measured);
  report["summary"] = {{"steps", predicted.size()},        {"without_terms", unknown},
                       {"predicted_s", predictedSum},      {"measured_s", measuredSum},
                       {"median_error", accuracy.median},  {"p90_error", accuracy.p90},
                       {"rank_correlation", accuracy.rank}};
  return report;
}

void printPrediction(const json &report, size_t rows) {
  std::printf("%12s %12s %7s  %-40s %s\n", "predicted us", "measured us", "error", "kernel", "node");
  for (const json &step : report["steps"]) {
    if (rows-- == 0)
      break;
    double predicted = step["predicted_s"], measured = step["measured_s"];
    std::printf("%12.1f %12.1f %+6.0f%%  %-40s %s\n", predicted * 1e6, measured * 1e6,
                (predicted / measured - 1) * 100,
                (step["kernel"].get<std::string>() + (step["has_terms"] ? "" : " (roofline)")).c_str(),
                step["node"].get<std::string>().c_str());
  }
  const json &s = report["summary"];
  std::printf(
      "steps   predicted %.3f ms, measured %.3f ms (sum of each step's fastest); of %zu steps: median "
      "error %.0f %%, 90 %% below %.0f %%, rank correlation %.3f; profile %s\n",
      s["predicted_s"].get<double>() * 1e3, s["measured_s"].get<double>() * 1e3, s["steps"].get<size_t>(),
      s["median_error"].get<double>() * 100, s["p90_error"].get<double>() * 100,
      s["rank_correlation"].get<double>(), report["profile"].get<std::string>().c_str());
}

} // namespace dspark
