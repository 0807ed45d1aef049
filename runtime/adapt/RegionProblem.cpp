#include "runtime/adapt/RegionProblem.h"
#include "runtime/executor/Session.h"
#include <algorithm>

namespace dspark {
namespace {

constexpr double kPinned = 1e3; // seconds of what a pinned region only does when its device has failed

// A further device with the links of the CPU.
std::vector<TransferCost> withSecondCpu(const std::vector<TransferCost> &links, int devices) {
  std::vector<TransferCost> more;
  auto original = [&](int device) { return device == devices ? 0 : device; };
  for (int from = 0; from <= devices; ++from)
    for (int to = 0; to <= devices; ++to)
      more.push_back(links[size_t(original(from) * devices + original(to))]);
  return more;
}

} // namespace

// Without times.
void RegionProblem::addVariants(AssignmentProblem &problem) const {
  int plain = int(program.devices().size());
  problem.regions.resize(program.regions().size() + 1);
  problem.regions[0].variants = {{0, 0, 0, 0}};
  for (size_t r = 0; r < program.regions().size(); ++r) {
    for (const RegionInfo::Variant &variant : program.regions()[r].variants)
      problem.regions[r + 1].variants.push_back({variant.device, 0, 0, double(variant.bytes)});
    if (threads > 1)
      problem.regions[r + 1].variants.push_back({plain, 0, 0, 0});
  }
  problem.devices = devices();
  if (threads == 1)
    return;
  problem.transfers = withSecondCpu(problem.transfers, plain);
  problem.deviceBytes.push_back(problem.deviceBytes[0]);
  for (int device = 0; device < plain; ++device)
    problem.places.push_back(device);
  problem.places.push_back(0);
}

AssignmentProblem RegionProblem::shapeless() const {
  AssignmentProblem problem;
  size_t plain = program.devices().size();
  problem.overlaps = true;
  problem.transfers.resize(plain * plain);
  problem.deviceBytes.assign(plain, kUnlimitedBytes);
  addVariants(problem);
  for (size_t r = 0; r < program.regions().size(); ++r)
    for (size_t v = 0; v < problem.regions[r + 1].variants.size(); ++v) {
      const auto &variants = program.regions()[r].variants;
      auto cpu = std::find_if(variants.begin(), variants.end(), [](auto &one) { return one.device == 0; });
      problem.regions[r + 1].variants[v].seconds = (v < variants.size() ? variants[v] : *cpu).seconds;
    }
  return problem;
}

AssignmentProblem RegionProblem::predicted(const SessionDevices &opened, const BoundPlan &bound,
                                           const CostModel &model) const {
  std::vector<int> unitOfStep(program.body().steps.size());
  for (size_t r = 0; r < program.regions().size(); ++r)
    for (int step : program.regions()[r].steps)
      unitOfStep[size_t(step)] = int(r) + 1;
  AssignmentProblem problem =
      placementProblem(program, opened, bound, unitOfStep, int(program.regions().size()));
  addVariants(problem);
  double footprint = bound.constantBytes + double(bound.lowerBound);
  for (const BoundStep &step : bound.steps) {
    int index = bodyIndex(program, *step.step), region = index < 0 ? -1 : program.regionOf(size_t(index));
    if (region < 0)
      continue;
    DeviceStep call(step.step->opName, step.record->call, step.record->work, step.constants);
    for (RegionVariant &variant : problem.regions[size_t(region) + 1].variants) {
      bool isParallel = isAllThreads(variant.device) && !step.record->isSmall;
      Device *device = opened.device(variant.device);
      StatusOr<double> taken =
          variant.device == 0 || isAllThreads(variant.device)
              ? StatusOr<double>(model.predict(step.cost, footprint, isParallel ? threads : 1))
          : device ? device->estimate(call)
                   : StatusOr<double>(kPinned);
      variant.seconds += taken.isOk() ? *taken : kPinned;
    }
  }
  for (size_t r = 0; r < program.regions().size(); ++r)
    if (const RegionInfo &region = program.regions()[r]; region.isPinned)
      for (size_t v = 0; v < problem.regions[r + 1].variants.size(); ++v) {
        int device = problem.regions[r + 1].variants[v].device;
        bool isWanted = (isAllThreads(device) ? 0 : device) == region.variants[size_t(region.chosen)].device;
        problem.regions[r + 1].variants[v].seconds += isWanted ? 0 : kPinned;
      }
  return problem;
}

Placement RegionProblem::placement(std::span<const int> variants) const {
  std::vector<int> plain(variants.begin(), variants.end());
  for (size_t r = 0; r < plain.size(); ++r) {
    const auto &own = program.regions()[r].variants;
    if (size_t(plain[r]) == own.size()) // all threads
      plain[r] =
          int(std::find_if(own.begin(), own.end(), [](auto &one) { return one.device == 0; }) - own.begin());
  }
  return placementOf(program, plain);
}

std::vector<char> RegionProblem::serialRegions(std::span<const int> variants) const {
  std::vector<char> isSerial(variants.size(), 1);
  for (size_t r = 0; r < variants.size(); ++r)
    isSerial[r] = size_t(variants[r]) < program.regions()[r].variants.size();
  return isSerial;
}

} // namespace dspark
