// The part of a session that is about devices: which there are, what runs where, what is learned, and what
// happens when one fails.
#include "planning/MachineProfile.h"
#include "runtime/executor/MachineModel.h"
#include "runtime/executor/Session.h"
#include "runtime/format/Hash.h"
#include <algorithm>
#include <bit>

namespace dspark {

Status Session::startDevices(const SessionOptions &options) {
  DSPARK_RETURN_IF_ERROR(context.devices.open(*plan, options.devices, options.deviceDeadline));
  std::string reason = reasonAgainstDevices(*plan);
  for (size_t d = 1; d < plan->devices().size(); ++d)
    if (!context.devices.device(int(d)))
      noted.push_back("no plug-in is given for device '" + plan->devices()[d] +
                      "': its steps run on the CPU");
  for (const DeviceSpec &spec : options.devices)
    if (std::find(plan->devices().begin(), plan->devices().end(), spec.name) == plan->devices().end())
      noted.push_back("the plan has nothing for device '" + spec.name + "'");
  if (context.devices.isEmpty())
    return Status::ok();
  if (!reason.empty()) {
    noted.push_back("devices are not used: " + reason);
    return Status::ok();
  }
  place(chosenPlacement(*plan));
  abandoned.resize(plan->devices().size());
  placesBySizes = !plan->sizes().empty();
  if (!options.adapt || plan->regions().empty())
    return Status::ok();
  threadChoice.reset();
  const CostModel &model = options.virtualTime ? MachineProfile::generic().model : modelOfThisMachine();
  context.timeModel = options.virtualTime ? &model : nullptr;
  regionTimes.resize(plan->regions().size());
  placesBySizes = false;
  placementChoice = std::make_unique<PlacementChoice>(*plan, context.devices, model, context.pool,
                                                      options.virtualTime ? &context.slowdown : nullptr);
  if (!options.learned.empty())
    readLearned(options.learned);
  return Status::ok();
}

// Machine, plan and devices that learned times belong to.
LearnedFor Session::whom() const {
  std::vector<uint64_t> hashes;
  for (const SectionEntry &section : plan->file().sections())
    hashes.push_back(section.hash);
  char text[20];
  std::snprintf(text, sizeof text, "%016llx",
                static_cast<unsigned long long>(hashBytes(std::as_bytes(std::span(hashes)))));
  LearnedFor whom{MachineFacts::read().fingerprint(), text, ""};
  for (size_t d = 1; d < context.devices.count(); ++d)
    if (const Device *device = context.devices.device(int(d)))
      whom.devices += device->name() + " (" + device->kind() + "), ";
  whom.devices += std::to_string(context.pool.threads()) + " threads";
  return whom;
}

void Session::readLearned(const std::string &path) {
  StatusOr<std::vector<LearnedBucket>> table = loadLearnedTable(path, whom());
  if (!table.isOk() && table.status().code() != Code::NotFound)
    noted.push_back(table.status().message() + "; it is ignored");
  if (table.isOk())
    for (const LearnedBucket &bucket : *table)
      placementChoice->adapter().learn(bucket);
}

Status Session::saveLearned(const std::string &path) const {
  return placementChoice ? saveLearnedTable(path, whom(), placementChoice->adapter().learned())
                         : Status::ok();
}

// The compiler's choice for these inputs, as far as its devices have not failed.
Status Session::placeForSizes(std::span<const BorrowedValue> inputs) {
  DSPARK_RETURN_IF_ERROR(readKey(inputs));
  if (key == placedFor)
    return Status::ok();
  TraceState state;
  DSPARK_RETURN_IF_ERROR(checkInputs(inputs, state));
  Placement chosen = chosenPlacement(*plan, nearestSizes(*plan, state.symbols));
  for (uint8_t &device : chosen)
    device = abandoned[device] ? 0 : device;
  usePlacement(std::move(chosen));
  placedFor = key;
  return Status::ok();
}

void Session::place(Placement placement) {
  placesBySizes = false;
  usePlacement(std::move(placement));
}

void Session::usePlacement(Placement placement) {
  for (uint8_t &device : placement)
    device = context.devices.device(device) ? device : 0;
  bool isCpuOnly =
      std::all_of(placement.begin(), placement.end(), [](uint8_t device) { return device == 0; });
  context.placement = isCpuOnly ? Placement() : std::move(placement);
}

// Nothing is put on that device any more.
void Session::leaveDevice(const DeviceFault &fault) {
  context.devices.stopAll();
  Placement placement = context.placement;
  std::replace(placement.begin(), placement.end(), uint8_t(fault.device), uint8_t(0));
  std::erase_if(traces, [](const Bound &bound) { return !bound.placement.empty(); });
  abandoned[size_t(fault.device)] = !placementChoice;
  usePlacement(std::move(placement));
  context.devices.keepWeightsOf(*plan, context.placement);
  if (placementChoice)
    return placementChoice->failed(fault);
  AdaptEvent event;
  event.run = runs;
  event.reason = fault.status.code() == Code::OutOfMemory ? "memory" : "fault";
  event.detail = fault.status.message();
  deviceEvents.push_back(std::move(event));
}

namespace {

// Sizes up to the next power of two are alike: 1, 2, 3 to 4, 5 to 8.
int64_t rangeOf(int64_t dim) { return dim <= 1 ? dim : int64_t(std::bit_ceil(uint64_t(dim))); }

} // namespace

// The first run of shapes also prepares for the CPU alone, which is where a fault leads to.
Status Session::choosePlacement(std::span<const BorrowedValue> inputs) {
  DSPARK_RETURN_IF_ERROR(readKey(inputs));
  auto shapes = int64_t(hashBytes(std::as_bytes(std::span(key))));
  if (!placementChoice->knows(shapes)) {
    std::vector<int64_t> ranges = key;
    std::transform(ranges.begin(), ranges.end(), ranges.begin(), rangeOf);
    context.placement.clear();
    DSPARK_ASSIGN_OR_RETURN(BoundPlan bound, bind(inputs));
    placementChoice->seed(shapes, int64_t(hashBytes(std::as_bytes(std::span(ranges)))), bound);
  }
  bool mustRelease = false;
  usePlacement(placementChoice->next(shapes, mustRelease));
  if (context.pool.threads() > 1) {
    context.serialRegions = placementChoice->serialRegions();
    context.isSerial = std::find(context.serialRegions.begin(), context.serialRegions.end(), 0) ==
                       context.serialRegions.end();
  }
  if (mustRelease) {
    std::erase_if(traces, [](const Bound &bound) { return !bound.placement.empty(); });
    context.devices.keepWeightsOf(*plan, context.placement);
  }
  if (placementChoice->measures()) {
    std::fill(regionTimes.begin(), regionTimes.end(), 0);
    context.regionTimes = &regionTimes;
  }
  return Status::ok();
}

} // namespace dspark
