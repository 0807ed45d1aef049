#include "runtime/device/Device.h"
#include <cmath>
#include <cstring>

namespace dspark {

DeviceMemory::~DeviceMemory() { device->library->api().release(device->device, memory); }

PreparedStep::~PreparedStep() { device->library->api().discard(device->device, call); }

StatusOr<std::shared_ptr<Device>> Device::open(const DeviceSpec &spec, double deadline) {
  DSPARK_ASSIGN_OR_RETURN(auto library, DeviceLibrary::load(spec, deadline));
  char message[512] = "";
  dspark_device *opened = nullptr;
  if (library->api().open(spec.config.c_str(), &opened, message, sizeof message) != DSPARK_DEVICE_OK)
    return Status(Code::Unsupported, "device '" + spec.name + "': cannot be opened: " +
                                         std::string(message, strnlen(message, sizeof message)));
  std::shared_ptr<Device> device(new Device(spec, std::move(library), opened, deadline));
  StatusOr<dspark_device_facts> facts = device->facts();
  if (!facts.isOk())
    return facts.status();
  return device;
}

Device::~Device() { library->api().close(device); }

Status Device::error(dspark_device_status status, std::string_view text) const {
  if (status == DSPARK_DEVICE_OK)
    return Status::ok();
  std::string who = "device '" + spec.name + "': ", what(text);
  switch (status) {
  case DSPARK_DEVICE_OK:
    return Status::ok();
  case DSPARK_DEVICE_UNSUPPORTED:
    return {Code::Unsupported, who + what + " is not supported"};
  case DSPARK_DEVICE_OUT_OF_MEMORY:
    return {Code::OutOfMemory, who + what + " needs more memory than it has"};
  case DSPARK_DEVICE_TIMEOUT:
    return {Code::Busy, who + what + " did not end within " + std::to_string(deadline) + " s"};
  case DSPARK_DEVICE_FAULT:
    break;
  }
  return {Code::IoError, who + what + " failed"};
}

StatusOr<dspark_device_facts> Device::facts() {
  dspark_device_facts facts{};
  DSPARK_RETURN_IF_ERROR(error(library->api().facts(device, &facts), "asking for its facts"));
  std::string problem = problemOf(facts);
  if (!problem.empty())
    return Status(Code::Unsupported, "device '" + spec.name + "': " + problem);
  return facts;
}

StatusOr<double> Device::estimate(const DeviceStep &step) {
  double seconds = 0;
  char reason[256] = "";
  dspark_device_step made = step.step();
  dspark_device_status status = library->api().estimate(device, &made, &seconds, reason, sizeof reason);
  if (status != DSPARK_DEVICE_OK)
    return Status(Code::Unsupported, std::string(reason, strnlen(reason, sizeof reason)));
  if (!(seconds >= 0 && std::isfinite(seconds)))
    return Status(Code::Unsupported, "a prediction of " + std::to_string(seconds) + " s cannot be true");
  return seconds;
}

StatusOr<std::unique_ptr<DeviceMemory>> Device::allocate(uint64_t bytes) {
  DSPARK_ASSIGN_OR_RETURN(dspark_device_facts now, facts());
  if (bytes > now.memory_left)
    return Status(Code::OutOfMemory, "device '" + spec.name + "': " + std::to_string(bytes) +
                                         " bytes are needed, and " + std::to_string(now.memory_left) +
                                         " are left");
  dspark_device_memory memory = 0;
  DSPARK_RETURN_IF_ERROR(
      error(library->api().allocate(device, bytes, &memory), std::to_string(bytes) + " bytes"));
  return std::make_unique<DeviceMemory>(shared_from_this(), memory, bytes);
}

StatusOr<std::unique_ptr<PreparedStep>> Device::prepare(const DeviceStep &step) {
  dspark_device_step made = step.step();
  dspark_device_call *call = nullptr;
  DSPARK_RETURN_IF_ERROR(error(library->api().prepare(device, &made, &call), made.op));
  return std::make_unique<PreparedStep>(shared_from_this(), call);
}

StatusOr<dspark_device_ticket> Device::copyIn(const DeviceMemory &to, uint64_t offset, const void *from,
                                              uint64_t bytes) {
  dspark_device_ticket ticket = 0;
  DSPARK_RETURN_IF_ERROR(
      error(library->api().copy_in(device, to.handle(), offset, from, bytes, &ticket), "a copy to it"));
  return ticket;
}

StatusOr<dspark_device_ticket> Device::copyOut(const DeviceMemory &from, uint64_t offset, void *to,
                                               uint64_t bytes) {
  dspark_device_ticket ticket = 0;
  DSPARK_RETURN_IF_ERROR(
      error(library->api().copy_out(device, from.handle(), offset, to, bytes, &ticket), "a copy from it"));
  return ticket;
}

StatusOr<dspark_device_ticket> Device::launch(const PreparedStep &step) {
  dspark_device_ticket ticket = 0;
  DSPARK_RETURN_IF_ERROR(error(library->api().launch(device, step.handle(), &ticket), "a launch"));
  return ticket;
}

StatusOr<double> Device::wait(dspark_device_ticket ticket) {
  double seconds = 0;
  DSPARK_RETURN_IF_ERROR(
      error(library->api().wait(device, ticket, deadline, &seconds), "a command that was waited for"));
  return seconds;
}

} // namespace dspark
