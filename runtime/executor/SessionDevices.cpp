#include "runtime/executor/SessionDevices.h"
#include <algorithm>
#include <set>

namespace dspark {

Status SessionDevices::open(const Program &program, std::span<const DeviceSpec> specs, double deadline) {
  std::set<std::string> names;
  for (const DeviceSpec &spec : specs)
    if (!names.insert(spec.name).second)
      return invalidArgument("device '" + spec.name + "' is given twice");
  for (const std::string &name : program.devices()) {
    Slot &slot = slots.emplace_back();
    auto spec = std::find_if(specs.begin(), specs.end(), [&](auto &one) { return one.name == name; });
    if (spec == specs.end())
      continue;
    DSPARK_ASSIGN_OR_RETURN(slot.device, Device::open(*spec, deadline));
  }
  return Status::ok();
}

bool SessionDevices::isEmpty() const {
  return std::none_of(slots.begin(), slots.end(), [](const Slot &slot) { return slot.device != nullptr; });
}

Status SessionDevices::failed(int device, Status status) {
  if (!status.isOk() && lastFault.device == 0)
    lastFault = {device, status};
  return status;
}

StatusOr<const DeviceMemory *> SessionDevices::weight(int number, int value,
                                                      std::span<const std::byte> bytes) {
  Slot &slot = slots[size_t(number)];
  auto [place, isNew] = slot.weights.try_emplace(value);
  if (!isNew)
    return place->second.get();
  auto load = [&]() -> StatusOr<std::unique_ptr<DeviceMemory>> {
    DSPARK_ASSIGN_OR_RETURN(auto memory, slot.device->allocate(bytes.size()));
    DSPARK_ASSIGN_OR_RETURN(dspark_device_ticket ticket,
                            slot.device->copyIn(*memory, 0, bytes.data(), bytes.size()));
    DSPARK_ASSIGN_OR_RETURN([[maybe_unused]] double seconds, slot.device->wait(ticket));
    return memory;
  };
  StatusOr<std::unique_ptr<DeviceMemory>> memory = load();
  if (!memory.isOk()) {
    slot.device->stop();
    slot.weights.erase(place);
    return failed(number, memory.status());
  }
  place->second = std::move(*memory);
  return place->second.get();
}

void SessionDevices::keepWeightsOf(const Program &program, const Placement &placement) {
  std::vector<uint32_t> needs = devicesThatNeed(program, placement);
  for (size_t d = 1; d < slots.size(); ++d)
    std::erase_if(slots[d].weights, [&](auto &weight) { return !(needs[size_t(weight.first)] >> d & 1); });
}

void SessionDevices::stopAll() {
  for (Slot &slot : slots)
    if (slot.device)
      slot.device->stop();
}

} // namespace dspark
