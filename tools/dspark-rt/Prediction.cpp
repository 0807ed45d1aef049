#include "tools/dspark-rt/Prediction.h"
#include "planning/CostSamples.h"
#include "runtime/executor/PlacementProblem.h"
#include <algorithm>
#include <cstdio>
#include <map>

namespace dspark {

using nlohmann::json;

namespace {

struct RegionTimes {
  int region; // of the plan, or -1
  int device;
  std::string nodes;
  size_t steps = 0;
  double predicted = 0, measured = 0;
};

// Of the regions in the plan's order: a step in none makes one of its own.
class RegionSums {
public:
  explicit RegionSums(const Program &program) : program(program) {}
  void add(const BoundStep &step, double predicted, double measured) {
    int index = bodyIndex(program, *step.step), region = index < 0 ? -1 : program.regionOf(size_t(index));
    auto [place, isNew] = placeOf.try_emplace(region, sums.size());
    if (isNew || region < 0)
      sums.push_back({region, step.device, std::string(step.step->location)});
    RegionTimes &sum = region < 0 ? sums.back() : sums[place->second];
    ++sum.steps;
    sum.predicted += predicted;
    sum.measured += measured;
  }
  json report() const {
    json list = json::array();
    for (const RegionTimes &sum : sums)
      list.push_back({{"region", sum.region},
                      {"device", program.devices()[size_t(sum.device)]},
                      {"first_nodes", sum.nodes},
                      {"steps", sum.steps},
                      {"predicted_s", sum.predicted},
                      {"measured_s", sum.measured}});
    return list;
  }

private:
  const Program &program;
  std::map<int, size_t> placeOf;
  std::vector<RegionTimes> sums;
};

void sortByMeasured(json &list) {
  std::sort(list.begin(), list.end(), [](const json &a, const json &b) {
    return a["measured_s"].get<double>() > b["measured_s"].get<double>();
  });
}

} // namespace

json predictionReport(const BoundPlan &bound, const Profile &profile, const MachineProfile &machine,
                      const Session &session) {
  int threads = session.threads();
  RegionSums regions(session.program());
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
    bool isKnown = step.device > 0 || machine.model.termsOf(step.cost.key);
    if (step.device > 0) {
      DeviceStep call(step.step->opName, step.record->call, step.record->work, step.constants);
      StatusOr<double> estimate = session.devices().device(step.device)->estimate(call);
      seconds = estimate.isOk() ? *estimate : 0;
    }
    regions.add(step, seconds, found);
    unknown += !isKnown;
    report["steps"].push_back({{"step", step.step->index},
                               {"node", step.step->location},
                               {"device", session.program().devices()[size_t(step.device)]},
                               {"kernel", step.cost.key},
                               {"predicted_s", seconds},
                               {"measured_s", found},
                               {"has_terms", isKnown}});
    if (threads == 1 && step.device == 0)
      report["cost_samples"].push_back(sampleJson({step.cost, footprint, found}));
    predicted.push_back(seconds);
    measured.push_back(found);
    predictedSum += seconds;
    measuredSum += found;
  }
  report["regions"] = regions.report();
  sortByMeasured(report["steps"]);
  sortByMeasured(report["regions"]);
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
  for (const json &region : report["regions"])
    if (region["region"].get<int>() >= 0)
      std::printf("region  %d on %s: predicted %.1f us, measured %.1f us, %zu steps from %s\n",
                  region["region"].get<int>(), region["device"].get<std::string>().c_str(),
                  region["predicted_s"].get<double>() * 1e6, region["measured_s"].get<double>() * 1e6,
                  region["steps"].get<size_t>(), region["first_nodes"].get<std::string>().c_str());
  const json &s = report["summary"];
  std::printf(
      "steps   predicted %.3f ms, measured %.3f ms (sum of each step's fastest); of %zu steps: median "
      "error %.0f %%, 90 %% below %.0f %%, rank correlation %.3f; profile %s\n",
      s["predicted_s"].get<double>() * 1e3, s["measured_s"].get<double>() * 1e3, s["steps"].get<size_t>(),
      s["median_error"].get<double>() * 100, s["p90_error"].get<double>() * 100,
      s["rank_correlation"].get<double>(), report["profile"].get<std::string>().c_str());
}

} // namespace dspark
