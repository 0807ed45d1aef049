// A device that is none: it computes with the catalogue's kernels on a thread of its own, and behaves as its
// configuration says, as an NPU with few operators or a GPU behind a slow link.
#pragma once
#include "devices/stub/StubConfig.h"
#include "dspark/device.h"
#include "kernels/common/kernel.h"
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

namespace dspark {

/// 64-byte aligned, uninitialised.
class AlignedBytes {
public:
  explicit AlignedBytes(uint64_t bytes = 0)
      : memory(static_cast<std::byte *>(std::aligned_alloc(64, (bytes + 64) / 64 * 64))), bytes(bytes) {}

  std::byte *data() const { return memory.get(); }
  uint64_t size() const { return bytes; }

private:
  struct Free {
    void operator()(std::byte *memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> memory; // null: there is none
  uint64_t bytes;
};

} // namespace dspark

struct dspark_device_call {
  std::vector<std::vector<int64_t>> dims;
  std::deque<std::vector<int64_t>> ints;
  std::deque<std::vector<double>> floats;
  std::deque<std::string> texts;
  std::vector<dspark::TensorView> views;
  std::vector<dspark::Attr> attrs;
  dspark::KernelCall call;
  dspark::KernelWork work;
  const dspark::Kernel *kernel = nullptr;
  dspark::AlignedBytes scratch, shared;
  double seconds = 0; // on the device, with nothing in the way
};

namespace dspark {

class StubDevice {
public:
  explicit StubDevice(StubConfig config) : config(std::move(config)) {}
  ~StubDevice();

  dspark_device_facts facts();
  /// Negative with a reason if the step is not supported.
  double estimate(const dspark_device_step &step, std::string &reason) const;
  dspark_device_status allocate(uint64_t bytes, dspark_device_memory &memory);
  void release(dspark_device_memory memory);
  dspark_device_status prepare(const dspark_device_step &step, std::unique_ptr<dspark_device_call> &call);
  /// nullptr if the range is outside the memory.
  std::byte *at(dspark_device_memory memory, uint64_t offset, uint64_t bytes);

  dspark_device_ticket copy(std::byte *to, const std::byte *from, uint64_t bytes, bool isIn);
  dspark_device_ticket launch(dspark_device_call *call);
  dspark_device_status wait(dspark_device_ticket ticket, double deadline, double *seconds);
  void stop();

  /// In place of the configuration's, counted in launches from now on.
  void setFaults(std::vector<StubFault> faults);
  /// That all commands have taken so far.
  double secondsTaken() const;

private:
  struct Command {
    dspark_device_call *call; // null: a copy
    std::byte *to;
    const std::byte *from;
    uint64_t bytes;
    bool isIn;
  };
  dspark_device_ticket enqueue(Command command);
  void work();
  dspark_device_status run(const Command &command, double &seconds);
  const StubFault *faultNow(StubFault::Kind kind) const;
  uint64_t memoryNow() const;
  double noisy(double seconds);

  StubConfig config; // its faults may change
  std::map<dspark_device_memory, AlignedBytes> blocks;
  dspark_device_memory lastMemory = 0;

  mutable std::mutex mutex; // of all below
  std::condition_variable changed;
  std::thread worker;
  std::deque<Command> queue;
  dspark_device_ticket given = 0, done = 0;
  std::vector<double> seconds; // of the last tickets
  dspark_device_status error = DSPARK_DEVICE_OK;
  bool isBusy = false, isStopping = false, isEnding = false;
  uint64_t launches = 0, allocated = 0, random = 0;
  double allSeconds = 0;
};

} // namespace dspark
