#include "tools/dspark-compile/Decide.h"
#include "planning/MachineProfile.h"
#include "runtime/format/PlanRewrite.h"
#include "tools/dspark-compile/Explain.h"
#include "tools/dspark-compile/JointSearch.h"
#include "tools/dspark-compile/PlacementSearch.h"
#include "tools/dspark-compile/PlanRules.h"
#include "tools/dspark-compile/PrecisionReport.h"
#include "tools/dspark-compile/Remarks.h"
#include "tools/dspark-rt/OptionTexts.h"
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>

namespace dspark {
namespace {

constexpr int kUsage = 1, kUnsupported = 2, kUnmet = 3, kOutOfMemory = 4;

int exitCodeOf(const Status &status) {
  switch (status.code()) {
  case Code::Unsupported:
    return kUnsupported;
  case Code::OutOfMemory:
    return kOutOfMemory;
  case Code::Mismatch:
    return kUnmet;
  default:
    return kUsage;
  }
}

class Decider {
public:
  Decider(CompileOptions options, const DecideOptions &decide)
      : options(std::move(options)), decide(decide), precision(decide.precision) {}

  CompileReport run() {
    precision.isExplained = !decide.explain.empty();
    Status status = prepare();
    // Otherwise each step may get a device or a kernel of its own.
    precision.joinsSteps = devices.empty() && !rules && decide.saveRules.empty();
    if (status.isOk())
      report = compileWithPrecision(options, precision, precisions);
    if (status.isOk() && report.exitCode == 0 && isJoint())
      status = searchJointly({options, precision, placementRequest()}, machine, *precisions);
    if (status.isOk() && report.exitCode == 0 && decide.asksSteps())
      status = decideSteps();
    if (!status.isOk()) {
      report.exitCode = exitCodeOf(status);
      report.message = options.model + ": " + status.message();
    }
    std::error_code ignored;
    if (report.exitCode != 0)
      std::filesystem::remove(options.output, ignored);
    return report;
  }

private:
  // Options, and the precisions that rules want: these are of the plan as it is without any choice.
  Status prepare() {
    options.joinsSteps = false;
    calibration.files = precision.files;
    DSPARK_RETURN_IF_ERROR(parseDimSizes(precision.dims, calibration.dims, "--calib-dim"));
    DSPARK_RETURN_IF_ERROR(parseDevices(decide.devices, devices));
    std::string ignored; // the search for precisions tells it
    machine = MachineProfile::ofThisMachine(ignored);
    if (decide.rules.empty())
      return Status::ok();
    DSPARK_ASSIGN_OR_RETURN(rules, PlanRules::load(decide.rules));
    if (CompileReport plain = compileModel(options); plain.exitCode != 0)
      return Status::ok(); // which the compile itself reports
    PlacementRequest nothing{{}, calibration, 0, {}, decide.threads};
    DSPARK_ASSIGN_OR_RETURN(PlanDecisions plain, PlacementSearch::run(options.output, nothing, machine));
    DSPARK_ASSIGN_OR_RETURN(auto wanted, rules->match(plain.steps, true));
    for (const StepDecision &step : plain.steps)
      if (auto rule = wanted.find(step.step); rule != wanted.end()) {
        DSPARK_RETURN_IF_ERROR(checkNames(step, rule->second));
        if (rule->second.precision == "f32")
          precision.sensitive.push_back(step.nodes.substr(0, step.nodes.find(", ")));
        else if (!rule->second.precision.empty())
          precision.forced[step.nodes] = rule->second.precision;
      }
    return Status::ok();
  }

  Status checkNames(const StepDecision &step, const StepRule &rule) const {
    bool isKnown = rule.device.empty() || rule.device == "cpu" ||
                   std::any_of(devices.begin(), devices.end(),
                               [&](const DeviceSpec &spec) { return spec.name == rule.device; });
    if (!isKnown)
      return {Code::NotFound,
              "node '" + step.nodes + "' shall run on device '" + rule.device + "', which no --device gives"};
    bool hasKernel =
        rule.kernel.empty() || std::any_of(allKernels().begin(), allKernels().end(),
                                           [&](const Kernel &row) { return rule.kernel == row.name; });
    return hasKernel ? Status::ok()
                     : invalidArgument("node '" + step.nodes + "' shall run with kernel '" + rule.kernel +
                                       "', which the catalogue has not (dspark-dump --list-kernels)");
  }

  // Whether there is anything to choose for devices that the CPU's choice might not suit.
  bool isJoint() const {
    return !devices.empty() && !rules && precisions && precision.precision == "auto" &&
           precision.bound.most > 0;
  }

  PlacementRequest placementRequest() const {
    PlacementRequest request{devices, calibration, 0, {}, decide.threads};
    if (precision.bound.metric == ErrorMetric::Relative)
      request.maxError = precision.bound.most;
    return request;
  }

  Status decideSteps() {
    PlacementRequest request = placementRequest();
    std::map<int, StepRule> wanted;
    if (rules) {
      DSPARK_ASSIGN_OR_RETURN(
          PlanDecisions plain,
          PlacementSearch::run(options.output, {{}, calibration, 0, {}, decide.threads}, machine));
      DSPARK_ASSIGN_OR_RETURN(wanted, rules->match(plain.steps, false));
      DSPARK_RETURN_IF_ERROR(preferKernels(wanted));
    }
    for (const auto &[step, rule] : wanted)
      if (!rule.device.empty())
        request.forced[step] = rule.device;
    DSPARK_ASSIGN_OR_RETURN(PlanDecisions decisions, PlacementSearch::run(options.output, request, machine));
    for (const StepDecision &step : decisions.steps)
      if (auto rule = wanted.find(step.step); rule != wanted.end())
        DSPARK_RETURN_IF_ERROR(checkKernel(step, rule->second));
    if (precisions)
      addPrecisions(decisions, *precisions);
    if (!decide.saveRules.empty())
      DSPARK_RETURN_IF_ERROR(savePlanRules(decide.saveRules, decisions));
    if (!decide.remarks.empty())
      DSPARK_RETURN_IF_ERROR(writeRemarks(decide.remarks, options.model, decisions));
    return print(decisions);
  }

  Status preferKernels(const std::map<int, StepRule> &wanted) const {
    bool isAny =
        std::any_of(wanted.begin(), wanted.end(), [](auto &entry) { return !entry.second.kernel.empty(); });
    return isAny ? rewritePlan(options.output,
                               [&](fb::PlanT &plan) {
                                 for (const auto &[step, rule] : wanted)
                                   plan.body->steps[size_t(step)]->kernel = rule.kernel;
                               })
                 : Status::ok();
  }

  static Status checkKernel(const StepDecision &step, const StepRule &rule) {
    bool isKept = rule.kernel.empty() || step.device != "cpu" || step.kernel == rule.kernel;
    return isKept ? Status::ok()
                  : invalidArgument("node '" + step.nodes + "' shall run with kernel '" + rule.kernel +
                                    "', which cannot do it here; '" + step.kernel + "' can");
  }

  Status print(const PlanDecisions &decisions) const {
    if (decide.explain.empty())
      return Status::ok();
    if (decide.explain == "table") {
      std::cout << explainTable(decisions);
      if (precisions)
        std::cout << precisionSummary(*precisions) << "\n";
      return Status::ok();
    }
    nlohmann::json facts = explainJson(decisions);
    if (precisions)
      facts.update(precisionJson(*precisions));
    if (decide.explain == "json") {
      std::cout << facts.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
    } else {
      std::ofstream file(decide.explain);
      file << explainPage(std::move(facts), std::filesystem::path(options.model).filename().string());
      file.close();
      if (!file)
        return {Code::IoError, decide.explain + ": cannot be written"};
    }
    return Status::ok();
  }

  CompileOptions options;
  const DecideOptions &decide;
  PrecisionOptions precision; // with what rules add
  CompileReport report;
  MachineProfile machine;
  CalibrationRequest calibration;
  std::vector<DeviceSpec> devices;
  std::optional<PlanRules> rules;
  std::optional<PrecisionResult> precisions;
};

} // namespace

CompileReport compileAndDecide(CompileOptions options, const DecideOptions &decide) {
  return Decider(std::move(options), decide).run();
}

} // namespace dspark
