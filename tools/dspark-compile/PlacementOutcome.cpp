// What a search for placements has come to: reasons, regions, and the plan.
#include "planning/Timeline.h"
#include "runtime/format/PlanRewrite.h"
#include "tools/dspark-compile/PlacementSearch.h"
#include <algorithm>
#include <cmath>

namespace dspark {
namespace {

// Neighbours with one decision become one region as long as that is at most this part of the whole, of its
// time and of its weights: what no longer fits into a device's memory is then a small part, too.
constexpr double kRegionShare = 1.0 / 32;
constexpr double kEqual = 1e-9; // of a run

std::string micro(double seconds) {
  char text[40];
  std::snprintf(text, sizeof text, seconds < 1e-3 ? "%.3g us" : "%.4g ms",
                seconds * (seconds < 1e-3 ? 1e6 : 1e3));
  return text;
}

} // namespace

std::string PlacementSearch::rejectedBy(size_t u, StepDecision &decision) {
  const std::vector<RegionVariant> &variants = problem.regions[u + 1].variants;
  double own = variants[size_t(chosen[u + 1])].seconds;
  std::string best;
  double least = INFINITY;
  for (size_t v = 0; v < variants.size(); ++v) {
    if (int(v) == chosen[u + 1])
      continue;
    const std::string &name = program->devices()[size_t(variants[v].device)];
    std::vector<int> moved = chosen;
    moved[u + 1] = int(v);
    AssignmentSolution other = evaluateAssignment(problem, moved);
    double apart = other.seconds - decisions.seconds;
    StepAlternative &alternative =
        decision.alternatives.emplace_back(StepAlternative{name, "", own + apart, ""});
    bool isSlower = apart >= 0, isEqual = std::fabs(apart) < kEqual * decisions.seconds;
    if (!isSlower && !other.isFeasible)
      alternative.refusal =
          megabytesText(decision.bytes) + " of weights do not fit in its memory beside the others";
    if (apart < least) {
      least = apart;
      best = isEqual    ? name + ": the run would end at the same time"
             : isSlower ? name + ": " + micro(apart) + " slower with what would cross"
                        : name + ": " + micro(-apart) + " faster, but " + alternative.refusal;
    }
  }
  for (size_t d = 1; d < refusals[u].size(); ++d)
    if (!refusals[u][d].empty()) {
      decision.alternatives.push_back({program->devices()[d], "", 0, refusals[u][d]});
      if (best.empty())
        best = program->devices()[d] + ": " + refusals[u][d];
    }
  return request.forced.contains(decision.step) ? "a rule wants it there" : best;
}

void PlacementSearch::explain() {
  std::vector<int> cpu(problem.regions.size());
  Timeline timeline(problem);
  decisions.seconds = timeline.end(chosen);
  decisions.cpuSeconds = evaluateAssignment(problem, cpu).seconds;
  for (size_t u = 0; u < decisions.steps.size(); ++u) {
    StepDecision &decision = decisions.steps[u];
    const RegionVariant &variant = problem.regions[u + 1].variants[size_t(chosen[u + 1])];
    decision.device = program->devices()[size_t(variant.device)];
    decision.start = timeline.starts()[u + 1];
    if (variant.device > 0) {
      decision.predicted = variant.seconds;
      decision.measured = 0;
      decision.kernel = decision.device;
      decisions.devices[size_t(variant.device) - 1].weights += decision.bytes;
    }
    decision.rejected = rejectedBy(u, decision);
    for (size_t s = 1; s < sizes; ++s)
      decisions.sizes[s - 1].devices.push_back(program->devices()[placements[s][size_t(decision.step)]]);
  }
}

// On the devices of two units, for all sizes.
bool PlacementSearch::agree(size_t unit, size_t other) const {
  size_t one = size_t(decisions.steps[unit].step), two = size_t(decisions.steps[other].step);
  return std::all_of(placements.begin(), placements.end(),
                     [&](const Placement &devices) { return devices[one] == devices[two]; });
}

// A region may be chosen otherwise while the plan runs, so all its steps can run on the same devices. What
// only the CPU can run has regions, too: where it stands between the others tells what may overlap. What only
// data tells has none.
void PlacementSearch::merge() {
  if (request.devices.empty())
    return;
  auto devicesOf = [&](size_t u) {
    std::vector<int> devices;
    for (const RegionVariant &variant : problem.regions[u + 1].variants)
      devices.push_back(variant.device);
    std::sort(devices.begin(), devices.end());
    return devices;
  };
  auto secondsOf = [&](size_t u) { return problem.regions[u + 1].variants[size_t(chosen[u + 1])].seconds; };
  double sum = 0, most = decisions.seconds * kRegionShare, bytes = 0, mostBytes = 0;
  for (const StepDecision &step : decisions.steps)
    mostBytes += step.bytes * kRegionShare;
  for (size_t u = 0; u < decisions.steps.size(); ++u) {
    if (!unitSteps[u])
      continue;
    bool isPinned = request.forced.contains(decisions.steps[u].step);
    bool joins = !regions.empty() && regions.back().isPinned == isPinned &&
                 regions.back().units.back() + 1 == u && sum + secondsOf(u) <= most &&
                 (decisions.steps[u].bytes == 0 || bytes + decisions.steps[u].bytes <= mostBytes) &&
                 agree(regions.back().units.back(), u) &&
                 devicesOf(regions.back().units.back()) == devicesOf(u);
    if (!joins) {
      regions.push_back({{}, isPinned});
      sum = bytes = 0;
    }
    sum += secondsOf(u);
    bytes += decisions.steps[u].bytes;
    regions.back().units.push_back(u);
    decisions.steps[u].region = int(regions.size()) - 1;
  }
}

Status PlacementSearch::write(const std::string &path) const {
  return rewritePlan(path, [&](fb::PlanT &plan) {
    for (size_t d = 0; d < decisions.devices.size(); ++d) {
      plan.devices[d]->kind = decisions.devices[d].kind;
      plan.devices[d]->memory = uint64_t(decisions.devices[d].memory);
    }
    for (const Merged &merged : regions) {
      auto region = std::make_unique<fb::RegionT>();
      region->pinned = merged.isPinned;
      auto variantOn = [&](int device) -> fb::RegionVariantT & {
        for (auto &variant : region->variants)
          if (variant->device == device)
            return *variant;
        region->variants.push_back(std::make_unique<fb::RegionVariantT>());
        region->variants.back()->device = device;
        return *region->variants.back();
      };
      for (size_t u : merged.units) {
        region->steps.push_back(decisions.steps[u].step);
        variantOn(0); // also what a rule wants elsewhere has a way out
        for (const RegionVariant &variant : problem.regions[u + 1].variants) {
          fb::RegionVariantT &written = variantOn(variant.device);
          written.seconds += variant.seconds;
          written.bytes += uint64_t(variant.bytes);
        }
      }
      auto chosenFor = [&](int device) {
        for (size_t v = 0; v < region->variants.size(); ++v)
          if (region->variants[v]->device == device)
            return int(v);
        return 0; // what that device can only do of other sizes
      };
      region->chosen = chosenFor(deviceOf(merged.units[0]));
      for (size_t s = 0; s < sizes && isBySize(); ++s)
        region->choices.push_back(chosenFor(placements[s][size_t(decisions.steps[merged.units[0]].step)]));
      plan.regions.push_back(std::move(region));
    }
    if (isBySize())
      writeSizes(plan);
  });
}

// Whether the sizes are better off with choices of their own.
bool PlacementSearch::isBySize() const {
  return std::any_of(placements.begin(), placements.end(),
                     [&](const Placement &devices) { return devices != placements[0]; });
}

void PlacementSearch::writeSizes(fb::PlanT &plan) const {
  for (size_t s = 0; s < sizes; ++s) {
    auto entry = std::make_unique<fb::SizesT>();
    for (const auto &[name, value] : dimsOf(s))
      if (auto symbol = std::find(plan.symbols.begin(), plan.symbols.end(), name);
          symbol != plan.symbols.end()) {
        entry->symbols.push_back(int(symbol - plan.symbols.begin()));
        entry->sizes.push_back(value);
      }
    plan.sizes.push_back(std::move(entry));
  }
}

} // namespace dspark
