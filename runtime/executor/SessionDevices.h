// The devices of one session: opened plug-ins, the weights in their memory, and what has gone wrong on them.
#pragma once
#include "runtime/device/Device.h"
#include "runtime/executor/Placement.h"
#include <map>
#include <utility>

namespace dspark {

struct DeviceFault {
  int device = 0; // 0: none
  Status status;
};

class SessionDevices {
public:
  /// Opens those that both the plan and `specs` name; the steps of others run on the CPU. Errors: those of
  /// Device::open, InvalidArgument if a name is given twice.
  Status open(const Program &program, std::span<const DeviceSpec> specs, double deadline);

  /// By the plan's number; null if there is none, as for the CPU.
  Device *device(int number) const {
    return size_t(number) < slots.size() ? slots[size_t(number)].device.get() : nullptr;
  }
  size_t count() const { return slots.size(); }
  bool isEmpty() const;

  /// The constant in that device's memory, copied there the first time. A failure becomes the fault.
  StatusOr<const DeviceMemory *> weight(int device, int value, std::span<const std::byte> bytes);
  /// Gives up the weights of all steps that `placement` does not put on their device.
  void keepWeightsOf(const Program &program, const Placement &placement);
  /// Nothing is queued or wrong any more.
  void stopAll();

  /// Notes what went wrong, and returns it.
  Status failed(int device, Status status);
  const DeviceFault &fault() const { return lastFault; }
  /// The fault since the last call.
  DeviceFault takeFault() { return std::exchange(lastFault, {}); }

private:
  struct Slot {
    std::shared_ptr<Device> device;
    std::map<int, std::unique_ptr<DeviceMemory>> weights; // by value
  };
  std::vector<Slot> slots; // by number; the CPU's is empty
  DeviceFault lastFault;
};

} // namespace dspark
