#include "runtime/adapt/PlacementChoice.h"
#include "runtime/executor/Session.h"
#include <algorithm>
#include <cmath>

namespace dspark {
namespace {

constexpr size_t kMostShapes = 4096;
constexpr double kShrink = 0.75;  // of what was too much for a device's memory
constexpr int kCanaryRepeats = 3; // of the first canary: the fastest is the usual time

} // namespace

// A small step that was made ready on a device, with zeros as operands.
struct PlacementChoice::Canary {
  std::unique_ptr<DeviceMemory> memory;
  std::unique_ptr<PreparedStep> step; // after memory: given up first
  double usual = 0;                   // seconds
};

PlacementChoice::PlacementChoice(const Program &program, SessionDevices &devices, const CostModel &model,
                                 ThreadPool &pool, const std::array<double, 2> *virtualSlowdown)
    : program(program), devices(devices), model(model), virtualSlowdown(virtualSlowdown),
      regions(program, pool.threads()), choice(regions.shapeless()), canaries(program.devices().size()),
      memory(canaries.size()), limits(size_t(regions.devices()), kUnlimitedBytes),
      seconds(program.regions().size() + 1) {
  if (!virtualSlowdown)
    cpu.emplace(pool);
  bool ignored = false;
  watchMemory(ignored);
}

PlacementChoice::~PlacementChoice() = default;

void PlacementChoice::seed(int64_t shapes, int64_t bucket, const BoundPlan &bound) {
  if (known.size() >= kMostShapes)
    known.clear();
  AssignmentProblem predicted = regions.predicted(devices, bound, model);
  auto [first, isNew] = buckets.try_emplace(bucket, predicted);
  if (isNew)
    choice.seed(bucket, predicted);
  Shapes &entry = known[shapes];
  entry.bucket = bucket;
  for (size_t r = 0; r < predicted.regions.size(); ++r) {
    std::vector<double> &scale = entry.scale.emplace_back();
    for (size_t v = 0; v < predicted.regions[r].variants.size(); ++v) {
      double here = predicted.regions[r].variants[v].seconds;
      scale.push_back(here > 0 ? first->second.regions[r].variants[v].seconds / here : 1);
    }
  }
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
  Device &device = *devices.device(number);
  StatusOr<dspark_device_ticket> ticket = device.launch(*canaries[size_t(number)]->step);
  StatusOr<double> taken = ticket.isOk() ? device.wait(*ticket) : ticket.status();
  if (!taken.isOk())
    device.stop();
  return taken.isOk() ? *taken : INFINITY;
}

// How many times as long as usual the resource takes.
double PlacementChoice::slowdownOf(int resource) {
  bool isParallel = regions.isAllThreads(resource);
  if (resource == 0 || isParallel)
    return cpu ? cpu->slowdown(isParallel) : (*virtualSlowdown)[size_t(isParallel)];
  const Canary *canary = canaries[size_t(resource)].get();
  bool canRun = canary && std::isfinite(canary->usual) && canary->usual > 0;
  return canRun ? canarySeconds(resource) / canary->usual : INFINITY;
}

void PlacementChoice::runCanary() {
  if (std::optional<int> resource = choice.canary())
    choice.reportCanary(*resource, slowdownOf(*resource));
}

// --- runs ---

const Placement &PlacementChoice::next(int64_t shapes, bool &mustRelease) {
  watchMemory(mustRelease);
  runCanary();
  current = &known.at(shapes);
  const std::vector<int> &wanted = choice.next(current->bucket);
  if (wanted != variants) {
    variants = wanted;
    std::span<const int> own = std::span<const int>(variants).subspan(1);
    placement = regions.placement(own);
    isSerial = regions.serialRegions(own);
  }
  return placement;
}

void PlacementChoice::report(std::span<const double> taken) {
  for (size_t r = 0; r < taken.size(); ++r)
    seconds[r + 1] = taken[r] * current->scale[r + 1][size_t(variants[r + 1])];
  choice.report(seconds);
}

// That ran the plan's region in the last run.
int PlacementChoice::deviceOf(size_t region) const {
  const auto &own = program.regions()[region].variants;
  size_t variant = size_t(variants[region + 1]);
  return variant < own.size() ? own[variant].device : 0;
}

void PlacementChoice::failed(const DeviceFault &fault) {
  detail = fault.status.message();
  size_t before = choice.events().size();
  if (fault.status.code() == Code::OutOfMemory) {
    // Less than what was asked for now, of which tensors are a part.
    double asked = 0;
    for (size_t r = 0; r < program.regions().size(); ++r)
      if (deviceOf(r) == fault.device)
        asked += double(program.regions()[r].variants[size_t(variants[r + 1])].bytes);
    double &limit = limits[size_t(fault.device)];
    limit = std::min(limit, asked) * kShrink;
    choice.setDeviceBytes(limits);
  }
  bool isUsed = choice.events().size() == before;
  for (size_t r = 0; r < program.regions().size() && isUsed; ++r)
    if (deviceOf(r) == fault.device) {
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
