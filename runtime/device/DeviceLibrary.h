// Loads a device plug-in, and finds out in a child process first whether that is safe: a plug-in that crashes
// or hangs while it is loaded, opened or copied with does so there.
#pragma once
#include "dspark/device.h"
#include "runtime/base/Status.h"
#include <memory>
#include <string>

namespace dspark {

/// "NAME=LIBRARY.so[,CONFIG]".
struct DeviceSpec {
  std::string name, library, config;
  static StatusOr<DeviceSpec> parse(const std::string &text);
};

inline constexpr double kDeviceDeadline = 10; // seconds until a plug-in that does not answer is given up

/// A loaded plug-in whose table has been checked; unloaded with the last reference.
class DeviceLibrary {
public:
  /// Errors name the device: NotFound (no such file), Version (another ABI), Unsupported (what the probe
  /// found).
  static StatusOr<std::shared_ptr<const DeviceLibrary>> load(const DeviceSpec &spec,
                                                             double deadline = kDeviceDeadline);
  ~DeviceLibrary();
  DeviceLibrary(const DeviceLibrary &) = delete;

  const dspark_device_api &api() const { return *table; }

private:
  DeviceLibrary(void *handle, const dspark_device_api *table) : handle(handle), table(table) {}
  static StatusOr<std::shared_ptr<const DeviceLibrary>> loadHere(const DeviceSpec &spec);
  static std::string tryOut(const DeviceSpec &spec, double deadline);

  void *handle;
  const dspark_device_api *table;
};

/// What makes facts unbelievable, or "".
std::string problemOf(const dspark_device_facts &facts);

} // namespace dspark
