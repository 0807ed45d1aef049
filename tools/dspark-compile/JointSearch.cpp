#include "tools/dspark-compile/JointSearch.h"
#include <algorithm>
#include <filesystem>
#include <set>

namespace dspark {
namespace {

constexpr double kLeastGain = 0.02; // of a run; less is within what predictions err

using Forms = std::map<std::string, std::string>; // by location of a region; others stay f32

Forms formsOf(const PrecisionResult &result) {
  Forms forms;
  for (size_t r = 0; r < result.regions.size(); ++r)
    if (result.choices[r] >= 0)
      forms[result.regions[r].location] = result.regions[r].variants[size_t(result.choices[r])].name();
  return forms;
}

class JointSearch {
public:
  JointSearch(const JointRequest &request, const MachineProfile &machine, PrecisionResult &chosen)
      : request(request), machine(machine), chosen(chosen), cpuForms(formsOf(chosen)),
        trial(request.options.output + ".joint") {}
  ~JointSearch() {
    std::error_code ignored;
    std::filesystem::remove(trial, ignored);
  }

  Status run() {
    DSPARK_RETURN_IF_ERROR(copy(request.options.output, trial));
    DSPARK_ASSIGN_OR_RETURN(PlanDecisions now, PlacementSearch::run(trial, request.placement, machine));
    least = now.seconds * (1 - kLeastGain);
    std::set<std::string> names;
    for (const PrecisionRegion &region : chosen.regions)
      for (const PrecisionVariant &variant : region.variants)
        if (variant.mostRows == 0 && region.pinnedBecause.empty())
          names.insert(variant.name());
    for (const std::string &name : names)
      DSPARK_RETURN_IF_ERROR(tryForm(name));
    if (found)
      chosen = std::move(*found);
    return Status::ok();
  }

private:
  static Status copy(const std::string &from, const std::string &to) {
    std::error_code error;
    std::filesystem::copy_file(from, to, std::filesystem::copy_options::overwrite_existing, error);
    return error ? Status(Code::IoError, to + ": cannot be written") : Status::ok();
  }

  // Everywhere, and then only where that is on a device.
  Status tryForm(const std::string &name) {
    Forms forms = cpuForms;
    for (const PrecisionRegion &region : chosen.regions)
      if (region.pinnedBecause.empty() && std::any_of(region.variants.begin(), region.variants.end(),
                                                      [&](auto &one) { return one.name() == name; }))
        forms[region.location] = name;
    DSPARK_ASSIGN_OR_RETURN(std::optional<PlanDecisions> decisions, tryOut(forms));
    if (!decisions)
      return Status::ok();
    Forms mixed = cpuForms;
    for (const StepDecision &step : decisions->steps)
      for (const PrecisionRegion &region : chosen.regions)
        if (step.device != "cpu" && holdsName(step.nodes, region.node) && forms.contains(region.location))
          mixed[region.location] = forms[region.location];
    return mixed == forms || mixed == cpuForms ? Status::ok() : tryOut(mixed).status();
  }

  // The decisions of a plan with these forms, none if it is outside the bound. Keeps the best plan.
  StatusOr<std::optional<PlanDecisions>> tryOut(const Forms &forms) {
    std::optional<PlanDecisions> none;
    if (forms == cpuForms)
      return none;
    CompileOptions options = request.options;
    options.output = trial;
    PrecisionOptions precision = request.precision;
    precision.precision = "auto";
    precision.bound.most = 0; // nothing is searched
    precision.forced = forms;
    precision.isExplained = true; // elsewhere
    std::optional<PrecisionResult> result;
    CompileReport report = compileWithPrecision(options, precision, result);
    if (report.exitCode != 0)
      return Status(Code::Internal, report.message);
    const ErrorBound &bound = request.precision.bound;
    if (!(std::max(result->error, result->heldOutError) <= bound.most))
      return none;
    DSPARK_ASSIGN_OR_RETURN(PlanDecisions decisions, PlacementSearch::run(trial, request.placement, machine));
    if (decisions.seconds < least) {
      least = decisions.seconds;
      giveReasons(*result, forms);
      result->bound = bound;
      result->options.output = request.options.output;
      found = std::move(result);
      DSPARK_RETURN_IF_ERROR(copy(trial, request.options.output));
    }
    return std::optional(std::move(decisions));
  }

  // Where a form is not the one that was best on the CPU, that one is the alternative.
  void giveReasons(PrecisionResult &result, const Forms &forms) const {
    std::map<std::string, std::string> reasonOnCpu;
    for (size_t r = 0; r < chosen.regions.size(); ++r)
      reasonOnCpu[chosen.regions[r].location] = chosen.reasons[r];
    for (size_t r = 0; r < result.regions.size(); ++r) {
      const std::string &location = result.regions[r].location;
      std::string onCpu = formOf(cpuForms, location);
      result.reasons[r] = formOf(forms, location) == onCpu
                              ? reasonOnCpu[location]
                              : onCpu + ": best on the CPU, but with the devices the run would end later";
    }
  }

  static std::string formOf(const Forms &forms, const std::string &location) {
    auto form = forms.find(location);
    return form == forms.end() ? "f32" : form->second;
  }

  const JointRequest &request;
  const MachineProfile &machine;
  PrecisionResult &chosen;
  Forms cpuForms;
  std::string trial; // a plan beside the output
  std::optional<PrecisionResult> found;
  double least = 0; // seconds, below which a plan is better
};

} // namespace

Status searchJointly(const JointRequest &request, const MachineProfile &machine, PrecisionResult &chosen) {
  return JointSearch(request, machine, chosen).run();
}

} // namespace dspark
