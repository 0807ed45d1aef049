// An open device of a plug-in, with Status for error codes and owners for what it gives out. Used by one
// thread at a time.
#pragma once
#include "runtime/device/DeviceLibrary.h"
#include "runtime/device/DeviceStep.h"
#include <memory>

namespace dspark {

class Device;

/// Bytes in a device's memory.
class DeviceMemory {
public:
  DeviceMemory(std::shared_ptr<Device> device, dspark_device_memory handle, uint64_t bytes)
      : device(std::move(device)), memory(handle), size(bytes) {}
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory &) = delete;

  dspark_device_memory handle() const { return memory; }
  uint64_t bytes() const { return size; }

private:
  std::shared_ptr<Device> device;
  dspark_device_memory memory;
  uint64_t size;
};

/// A step that a device can launch.
class PreparedStep {
public:
  PreparedStep(std::shared_ptr<Device> device, dspark_device_call *call)
      : device(std::move(device)), call(call) {}
  ~PreparedStep();
  PreparedStep(const PreparedStep &) = delete;

  dspark_device_call *handle() const { return call; }

private:
  std::shared_ptr<Device> device;
  dspark_device_call *call;
};

class Device : public std::enable_shared_from_this<Device> {
public:
  /// Loads the plug-in (DeviceLibrary::load) and opens it.
  static StatusOr<std::shared_ptr<Device>> open(const DeviceSpec &spec, double deadline = kDeviceDeadline);
  ~Device();

  const std::string &name() const { return spec.name; }
  const char *kind() const { return library->api().kind; }
  /// Unsupported if they cannot be true.
  StatusOr<dspark_device_facts> facts();
  /// Predicted seconds; Unsupported with the reason.
  StatusOr<double> estimate(const DeviceStep &step);
  /// OutOfMemory without asking the device for more than it says it has.
  StatusOr<std::unique_ptr<DeviceMemory>> allocate(uint64_t bytes);
  StatusOr<std::unique_ptr<PreparedStep>> prepare(const DeviceStep &step);

  StatusOr<dspark_device_ticket> copyIn(const DeviceMemory &to, uint64_t offset, const void *from,
                                        uint64_t bytes);
  StatusOr<dspark_device_ticket> copyOut(const DeviceMemory &from, uint64_t offset, void *to, uint64_t bytes);
  StatusOr<dspark_device_ticket> launch(const PreparedStep &step);
  /// Seconds that the command took on the device.
  StatusOr<double> wait(dspark_device_ticket ticket);
  void stop() { library->api().stop(device); }

private:
  friend class DeviceMemory;
  friend class PreparedStep;
  Device(DeviceSpec spec, std::shared_ptr<const DeviceLibrary> library, dspark_device *device,
         double deadline)
      : spec(std::move(spec)), library(std::move(library)), device(device), deadline(deadline) {}
  Status error(dspark_device_status status, std::string_view text) const;

  DeviceSpec spec;
  std::shared_ptr<const DeviceLibrary> library;
  dspark_device *device;
  double deadline;
};

} // namespace dspark
