// What a search for placements decides about: the steps of a plan's body, branches and loops among them, with
// the devices that may run them.
#include "tools/dspark-compile/PlacementSearch.h"
#include <algorithm>

namespace dspark {
namespace {

// Of a step whose precision nobody chose: that of its packed weights, else of its result.
std::string precisionOf(const BoundStep &step) {
  Attrs attrs(step.step->attrs);
  std::string layout(attrs.s("packed", ""));
  if (!layout.empty() && layout != "panel16")
    return layout + (attrs.s("arithmetic", "").empty() ? "" : "/" + std::string(attrs.s("arithmetic", "")));
  return std::string(step.results.empty() ? "" : dtypeName(step.results[0].type));
}

double constantBytes(const Program &program, const StepInfo &step) {
  double bytes = 0;
  for (int value : step.inputs)
    if (value >= 0 && program.values()[size_t(value)].kind == fb::ValueKind::Constant)
      bytes += double(program.values()[size_t(value)].bytes.size());
  return bytes;
}

void forStepsInside(const StepInfo &step, const auto &visit) {
  for (const BlockInfo &block : step.blocks)
    for (const StepInfo &inner : block.steps) {
      visit(inner);
      forStepsInside(inner, visit);
    }
}

} // namespace

StepDecision PlacementSearch::describe(const BoundStep &step, double footprint) const {
  StepDecision decision;
  decision.op = step.step->opName;
  decision.type = step.results.empty() ? "" : step.results[0].str();
  decision.precision = precisionOf(step);
  decision.kernel = step.kernel->name;
  decision.predicted = machine.model.predict(step.cost, footprint, session->threads());
  if (auto line = profile.lines.find({step.step, step.kernel}); line != profile.lines.end())
    decision.measured = line->second.least;
  return decision;
}

// A step that shapes alone do not tell everything about: a branch, a loop, or one on what only data tells.
std::optional<StepDecision> PlacementSearch::describeMeasured(const StepInfo &step) const {
  StepDecision decision;
  auto add = [&](const StepInfo &one) {
    for (auto line = profile.lines.lower_bound({&one, nullptr});
         line != profile.lines.end() && line->first.first == &one; ++line) {
      double calls = double(line->second.calls) / measuredRuns, seconds = calls * line->second.least;
      decision.measured += seconds;
      if (&one == &step)
        decision.kernel = line->first.second->name;
      else
        decision.inside.push_back(
            {std::string(one.location), std::string(one.opName), line->first.second->name, calls, seconds});
    }
  };
  add(step);
  forStepsInside(step, add);
  if (decision.measured == 0)
    return std::nullopt;
  decision.op = step.kind == fb::StepKind::If     ? "if"
                : step.kind == fb::StepKind::Loop ? "loop"
                                                  : std::string(step.opName);
  return decision;
}

// One unit per step of the body that a run does. Views pass on who made what they are views of.
void PlacementSearch::describeAll() {
  double footprint = bound.constantBytes + double(bound.lowerBound);
  std::map<const StepInfo *, const BoundStep *> calls;
  for (const BoundStep &step : bound.steps)
    if (step.step->kind == fb::StepKind::Kernel)
      calls[step.step] = &step;
  const std::vector<StepInfo> &steps = program->body().steps;
  std::vector<int> unitOfStep(steps.size()), maker(program->values().size(), -1);
  for (size_t i = 0; i < steps.size(); ++i) {
    const StepInfo &step = steps[i];
    auto found = calls.find(&step);
    const BoundStep *call = found == calls.end() ? nullptr : found->second;
    std::optional<StepDecision> described =
        call ? std::optional(describe(*call, footprint)) : describeMeasured(step);
    if (!described) {
      if (isView(step))
        maker[size_t(step.outputs[0])] = maker[size_t(step.inputs[0])];
      continue;
    }
    StepDecision &decision = decisions.steps.emplace_back(std::move(*described));
    decision.step = int(i);
    decision.nodes = step.location;
    decision.bytes = constantBytes(*program, step);
    forUses(step, [&](int value) {
      if (maker[size_t(value)] >= 0)
        decision.inputs.push_back(maker[size_t(value)]);
    });
    for (int value : step.outputs)
      if (value >= 0)
        maker[size_t(value)] = int(decisions.steps.size()) - 1;
    unitSteps.push_back(call);
    unitOfStep[i] = int(decisions.steps.size());
  }
  problem = placementProblem(*program, session->devices(), bound, unitOfStep, int(decisions.steps.size()));
}

// Why no device may have the unit, whatever it can do; "" if one may.
std::string PlacementSearch::onlyOnCpuBecause(size_t unit) const {
  const StepInfo &step = program->body().steps[size_t(decisions.steps[unit].step)];
  if (step.kind != fb::StepKind::Kernel)
    return "branches, loops and lists stay on the CPU";
  if (!unitSteps[unit])
    return "only data tells what it works on";
  return bound.endsAt == &step ? "its results' dims depend on data" : "";
}

// What is measured counts, else what is predicted.
void PlacementSearch::addVariants() {
  for (size_t u = 0; u < decisions.steps.size(); ++u) {
    StepDecision &decision = decisions.steps[u];
    std::vector<RegionVariant> &variants = problem.regions[u + 1].variants;
    variants.push_back({0, decision.measured > 0 ? decision.measured : decision.predicted, 0, 0});
    std::vector<std::string> &reasons = refusals.emplace_back(program->devices().size());
    if (std::string reason = onlyOnCpuBecause(u); !reason.empty()) {
      std::fill(reasons.begin() + 1, reasons.end(), reason);
      continue;
    }
    const BoundStep &step = *unitSteps[u];
    DeviceStep call(step.step->opName, step.record->call, step.record->work, step.constants);
    for (size_t d = 1; d < program->devices().size(); ++d) {
      StatusOr<double> seconds = session->devices().device(int(d))->estimate(call);
      if (seconds.isOk())
        variants.push_back({int(d), *seconds, 0, decision.bytes});
      else
        reasons[d] = seconds.status().message();
    }
    // The plan keeps the fastest ones.
    std::sort(variants.begin() + 1, variants.end(),
              [](const RegionVariant &a, const RegionVariant &b) { return a.seconds < b.seconds; });
    while (variants.size() > kMaxRegionVariants) {
      reasons[size_t(variants.back().device)] = "slower than three other devices";
      variants.pop_back();
    }
  }
}

} // namespace dspark
