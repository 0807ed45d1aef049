// A call of a catalogue operator in the words of the device ABI (include/dspark/device.h).
#pragma once
#include "dspark/device.h"
#include "kernels/common/kernel.h"
#include <string>
#include <vector>

namespace dspark {

/// Owns what dspark_device_step points to, but for dims and attribute values, which are those of the call.
class DeviceStep {
public:
  /// Bit k of `constants`: input k is a weight.
  DeviceStep(std::string_view op, const KernelCall &call, const KernelWork &work, uint64_t constants);

  std::vector<dspark_device_tensor> inputs, outputs; // memory is filled in by the caller
  dspark_device_step step() const;

private:
  std::string op;
  std::vector<std::string> names;
  std::vector<dspark_device_attribute> attributes;
  double flops, bytes;
};

} // namespace dspark
