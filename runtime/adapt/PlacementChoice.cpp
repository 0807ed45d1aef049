#include "runtime/adapt/PlacementChoice.h"
#include "runtime/adapt/Spin.h"
#include "runtime/executor/PlacementProblem.h"
#include <algorithm>
#include <chrono>
#include <cmath>

namespace dspark {
namespace {

constexpr double kPinned = 1e3;   // seconds of what a pinned region only does when its device has failed
constexpr double kShrink = 0.75;  // of what was too much for a device's memory
constexpr int kCanaryRepeats = 3; // of the first canary: the fastest is the usual time

// The problem before any shapes are known: regions, variants and devices.
AssignmentProblem shapelessProblem(const Program &program) {
  AssignmentProblem problem;
  problem.devices = int(program.devices().size());
  problem.transfers.resize(size_t(problem.devices) * size_t(problem.devices));
  problem.deviceBytes.assign(size_t(problem.devices), 1e18);
  problem.regions.resize(program.regions().size() + 1);
  problem.regions[0].variants = {{0, 0, 0, 0}};
  for (size_t r = 0; r < program.regions().size(); ++r)
    for (const RegionInfo::Variant &variant : program.regions()[r].variants)
      problem.regions[r + 1].variants.push_back({variant.device, variant.seconds, 0, double(variant.bytes)});
  return problem;
}

} // namespace

// A small step that was made ready on a device, with zeros as operands.
struct PlacementChoice::Canary {
  std::unique_ptr<DeviceMemory> memory;
  std::unique_ptr<PreparedStep> step; // after memory: given up first
  double usual = 0;                   // seconds
};

PlacementChoice::PlacementChoice(const Program &program, SessionDevices &devices, const CostModel &model,
                                 int threads, const double *virtualSlowdown)
    : program(program), devices(devices), model(model), threads(threads), virtualSlowdown(virtualSlowdown),
      choice(shapelessProblem(program)), canaries(program.devices().size()), memory(canaries.size()),
      limits(canaries.size(), 1e18), seconds(program.regions().size() + 1) {
  canaries[0] = std::make_unique<Canary>();
  canaries[0]->usual = canarySeconds(0);
  for (int i = 1; i < kCanaryRepeats; ++i)
    canaries[0]->usual = std::min(canaries[0]->usual, canarySeconds(0));
  bool ignored = false;
  watchMemory(ignored);
}

PlacementChoice::~PlacementChoice() = default;

// --- predictions ---

AssignmentProblem PlacementChoice::problemOf(const BoundPlan &bound) const {
  std::vector<int> unitOfStep(program.body().steps.size());
  for (size_t r = 0; r < program.regions().size(); ++r)
    for (int step : program.regions()[r].steps)
      unitOfStep[size_t(step)] = int(r) + 1;
  AssignmentProblem problem =
      placementProblem(program, devices, bound, unitOfStep, int(program.regions().size()));
  problem.deviceBytes = limits;
  for (size_t r = 0; r < program.regions().size(); ++r)
    for (const RegionInfo::Variant &variant : program.regions()[r].variants)
      problem.regions[r + 1].variants.push_back({variant.device, 0, 0, double(variant.bytes)});
  double footprint = bound.constantBytes + double(bound.lowerBound);
  for (const BoundStep &step : bound.steps) {
    int index = bodyIndex(program, *step.step), region = index < 0 ? -1 : program.regionOf(size_t(index));
    if (region < 0)
      continue;
    DeviceStep call(step.step->opName, step.record->call, step.record->work, step.constants);
    for (RegionVariant &variant : problem.regions[size_t(region) + 1].variants) {
      Device *device = devices.device(variant.device);
      StatusOr<double> taken = variant.device == 0
                                   ? StatusOr<double>(model.predict(step.cost, footprint, threads))
                               : device ? device->estimate(call)
                                        : StatusOr<double>(kPinned);
      variant.seconds += taken.isOk() ? *taken : kPinned;
    }
  }
  for (size_t r = 0; r < program.regions().size(); ++r)
    if (const RegionInfo &region = program.regions()[r]; region.isPinned)
      for (size_t v = 0; v < region.variants.size(); ++v)
        if (int(v) != region.chosen)
          problem.regions[r + 1].variants[v].seconds += kPinned;
  return problem;
}

void PlacementChoice::seed(int64_t bucket, const BoundPlan &bound) {
  known[bucket] = true;
  choice.seed(bucket, problemOf(bound));
  for (int device = 1; device < int(canaries.size()); ++device)
    if (!canaries[size_t(device)] && devices.device(device))
      makeCanary(device, bound);
}

// --- devices ---

void PlacementChoice::watchMemory(bool &mustRelease) {
  bool hasChanged = false;
  for (size_t d = 1; d < memory.size(); ++d) {
    Device *device = devices.device(int(d));
    StatusOr<dspark_device_facts> facts = device ? device->facts() : Status(Code::NotFound, "");
    double now = facts.isOk() ? double(facts->memory) : 0;
    if (now == memory[d])
      continue;
    mustRelease |= now < memory[d];
    memory[d] = limits[d] = now;
    hasChanged = true;
  }
  if (hasChanged)
    choice.setDeviceBytes(limits);
}

// The step that the device predicts to be its fastest.
void PlacementChoice::makeCanary(int device, const BoundPlan &bound) {
  double least = INFINITY;
  std::optional<DeviceStep> fastest;
  for (const BoundStep &step : bound.steps) {
    DeviceStep call(step.step->opName, step.record->call, step.record->work, step.constants);
    StatusOr<double> taken = devices.device(device)->estimate(call);
    if (taken.isOk() && *taken < least) {
      least = *taken;
      fastest.emplace(std::move(call));
    }
  }
  if (!fastest)
    return;
  auto canary = std::make_unique<Canary>();
  uint64_t bytes = 0;
  for (auto *side : {&fastest->inputs, &fastest->outputs})
    for (dspark_device_tensor &tensor : *side) {
      tensor.offset = bytes;
      bytes += (tensor.bytes + 63) / 64 * 64;
    }
  StatusOr<std::unique_ptr<DeviceMemory>> block =
      devices.device(device)->allocate(std::max<uint64_t>(bytes, 64));
  if (!block.isOk())
    return;
  for (auto *side : {&fastest->inputs, &fastest->outputs})
    for (dspark_device_tensor &tensor : *side)
      tensor.memory = (*block)->handle();
  std::vector<std::byte> zeros(bytes);
  StatusOr<dspark_device_ticket> copied = devices.device(device)->copyIn(**block, 0, zeros.data(), bytes);
  StatusOr<std::unique_ptr<PreparedStep>> ready = devices.device(device)->prepare(*fastest);
  if (!copied.isOk() || !devices.device(device)->wait(*copied).isOk() || !ready.isOk())
    return devices.device(device)->stop();
  canary->memory = std::move(*block);
  canary->step = std::move(*ready);
  canaries[size_t(device)] = std::move(canary);
  double usual = INFINITY;
  for (int i = 0; i < kCanaryRepeats; ++i)
    usual = std::min(usual, canarySeconds(device));
  canaries[size_t(device)]->usual = usual;
}

// Infinite if the device cannot do it.
double PlacementChoice::canarySeconds(int number) {
  if (number == 0 && virtualSlowdown)
    return *virtualSlowdown;
  if (number == 0) {
    auto start = std::chrono::steady_clock::now();
    spin(nullptr, 0, 4, 0);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  Device &device = *devices.device(number);
  StatusOr<dspark_device_ticket> ticket = device.launch(*canaries[size_t(number)]->step);
  StatusOr<double> taken = ticket.isOk() ? device.wait(*ticket) : ticket.status();
  if (!taken.isOk())
    device.stop();
  return taken.isOk() ? *taken : INFINITY;
}

void PlacementChoice::runCanary() {
  std::optional<int> resource = choice.canary();
  if (!resource)
    return;
  const Canary *canary = canaries[size_t(*resource)].get();
  bool canRun = canary && std::isfinite(canary->usual) && canary->usual > 0;
  choice.reportCanary(*resource, canRun ? canarySeconds(*resource) / canary->usual : INFINITY);
}

// --- runs ---

const Placement &PlacementChoice::next(int64_t bucket, bool &mustRelease) {
  watchMemory(mustRelease);
  runCanary();
  const std::vector<int> &wanted = choice.next(bucket);
  if (wanted != variants) {
    variants = wanted;
    placement = placementOf(program, std::span<const int>(variants).subspan(1));
  }
  return placement;
}

void PlacementChoice::report(std::span<const double> regions) {
  std::copy(regions.begin(), regions.end(), seconds.begin() + 1);
  choice.report(seconds);
}

void PlacementChoice::failed(const DeviceFault &fault) {
  detail = fault.status.message();
  size_t before = choice.events().size();
  if (fault.status.code() == Code::OutOfMemory) {
    // Less than what was asked for now, of which tensors are a part.
    double asked = 0;
    for (size_t r = 0; r < program.regions().size(); ++r)
      if (const RegionInfo::Variant &variant = program.regions()[r].variants[size_t(variants[r + 1])];
          variant.device == fault.device)
        asked += double(variant.bytes);
    double &limit = limits[size_t(fault.device)];
    limit = std::min(limit, asked) * kShrink;
    choice.setDeviceBytes(limits);
  }
  bool isUsed = choice.events().size() == before;
  for (size_t r = 0; r < program.regions().size() && isUsed; ++r)
    if (program.regions()[r].variants[size_t(variants[r + 1])].device == fault.device) {
      choice.fault(r + 1);
      isUsed = false;
    }
  for (size_t i = before; i < choice.events().size(); ++i)
    choice.events()[i].detail = detail;
}

std::vector<AdaptEvent> PlacementChoice::takeEvents() {
  std::vector<AdaptEvent> events = std::exchange(choice.events(), {});
  for (AdaptEvent &event : events) // region 0 is the caller
    for (std::vector<int> *side : {&event.from, &event.to})
      if (!side->empty())
        side->erase(side->begin());
  return events;
}

} // namespace dspark
