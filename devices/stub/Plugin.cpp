// The stub as a plug-in: the functions of include/dspark/device.h, and of control.h.
#include "devices/stub/StubDevice.h"
#include "devices/stub/control.h"
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <thread>

using dspark::StubConfig;
using dspark::StubDevice;

struct OpenStubs {
  std::mutex mutex;
  std::set<StubDevice *> all;
};

static OpenStubs &openStubs() {
  static OpenStubs stubs;
  return stubs;
}

struct dspark_device {
  explicit dspark_device(StubConfig config) : stub(std::move(config)) {
    std::lock_guard lock(openStubs().mutex);
    openStubs().all.insert(&stub);
  }
  ~dspark_device() {
    std::lock_guard lock(openStubs().mutex);
    openStubs().all.erase(&stub);
  }
  StubDevice stub;
};

namespace {

void say(const std::string &text, char *message, size_t size) {
  if (message && size > 0)
    std::snprintf(message, size, "%s", text.c_str());
}

dspark_device_status open(const char *path, dspark_device **device, char *message, size_t size) {
  auto config = StubConfig::load(path ? path : "");
  if (!config.isOk()) {
    say(config.status().message(), message, size);
    return DSPARK_DEVICE_FAULT;
  }
  if (config->onOpen == "crash")
    std::abort();
  while (config->onOpen == "hang")
    std::this_thread::sleep_for(std::chrono::seconds(1));
  if (config->onOpen == "fail") {
    say("there is no such device", message, size);
    return DSPARK_DEVICE_FAULT;
  }
  *device = new dspark_device(std::move(*config));
  return DSPARK_DEVICE_OK;
}

void close(dspark_device *device) { delete device; }

dspark_device_status facts(dspark_device *device, dspark_device_facts *facts) {
  *facts = device->stub.facts();
  return DSPARK_DEVICE_OK;
}

dspark_device_status estimate(dspark_device *device, const dspark_device_step *step, double *seconds,
                              char *reason, size_t size) {
  std::string why;
  *seconds = device->stub.estimate(*step, why);
  if (*seconds >= 0)
    return DSPARK_DEVICE_OK;
  say(why, reason, size);
  return DSPARK_DEVICE_UNSUPPORTED;
}

dspark_device_status allocate(dspark_device *device, uint64_t bytes, dspark_device_memory *memory) {
  return device->stub.allocate(bytes, *memory);
}

void release(dspark_device *device, dspark_device_memory memory) { device->stub.release(memory); }

dspark_device_status prepare(dspark_device *device, const dspark_device_step *step,
                             dspark_device_call **call) {
  std::unique_ptr<dspark_device_call> made;
  dspark_device_status status = device->stub.prepare(*step, made);
  *call = made.release();
  return status;
}

void discard(dspark_device *, dspark_device_call *call) { delete call; }

dspark_device_status copyIn(dspark_device *device, dspark_device_memory to, uint64_t offset, const void *from,
                            uint64_t bytes, dspark_device_ticket *ticket) {
  std::byte *place = device->stub.at(to, offset, bytes);
  if (!place)
    return DSPARK_DEVICE_FAULT;
  *ticket = device->stub.copy(place, static_cast<const std::byte *>(from), bytes, true);
  return DSPARK_DEVICE_OK;
}

dspark_device_status copyOut(dspark_device *device, dspark_device_memory from, uint64_t offset, void *to,
                             uint64_t bytes, dspark_device_ticket *ticket) {
  const std::byte *place = device->stub.at(from, offset, bytes);
  if (!place)
    return DSPARK_DEVICE_FAULT;
  *ticket = device->stub.copy(static_cast<std::byte *>(to), place, bytes, false);
  return DSPARK_DEVICE_OK;
}

dspark_device_status launch(dspark_device *device, dspark_device_call *call, dspark_device_ticket *ticket) {
  *ticket = device->stub.launch(call);
  return DSPARK_DEVICE_OK;
}

dspark_device_status wait(dspark_device *device, dspark_device_ticket ticket, double deadline,
                          double *seconds) {
  return device->stub.wait(ticket, deadline, seconds);
}

void stop(dspark_device *device) { device->stub.stop(); }

constexpr dspark_device_api kApi = {DSPARK_DEVICE_ABI,
                                    sizeof(dspark_device_api),
                                    "stub",
                                    open,
                                    close,
                                    facts,
                                    estimate,
                                    allocate,
                                    release,
                                    prepare,
                                    discard,
                                    copyIn,
                                    copyOut,
                                    launch,
                                    wait,
                                    stop};

} // namespace

extern "C" DSPARK_API const dspark_device_api *dspark_device_query(uint32_t abi) {
  return abi == DSPARK_DEVICE_ABI ? &kApi : nullptr;
}

extern "C" DSPARK_API int dspark_stub_set_faults(const char *text) {
  auto faults = StubConfig::parseFaults(text);
  if (!faults.isOk())
    return -1;
  std::lock_guard lock(openStubs().mutex);
  for (StubDevice *stub : openStubs().all)
    stub->setFaults(*faults);
  return 0;
}

extern "C" DSPARK_API double dspark_stub_seconds(void) {
  std::lock_guard lock(openStubs().mutex);
  double sum = 0;
  for (const StubDevice *stub : openStubs().all)
    sum += stub->secondsTaken();
  return sum;
}
