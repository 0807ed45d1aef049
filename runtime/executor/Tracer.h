// Traces a block for concrete shapes: walks its steps once, runs their shape functions on numbers, takes the
// branches whose condition is known, plans buffers and selects kernels. What comes out is one Segment; where
// only data can tell how to go on, the segment ends and Tracer::resume makes the next one when that data has
// been seen.
#pragma once
#include "runtime/executor/Context.h"
#include "runtime/executor/Segment.h"
#include <map>

namespace dspark {

class Tracer {
public:
  /// Traces from `state` on. `slots` are the current pointers of the trace's slots (kernels are prepared with
  /// them).
  static StatusOr<std::unique_ptr<Segment>> trace(Context &context, TraceState state, int depth,
                                                  const std::vector<const void *> &slots);
  /// The segment that follows `before` when its end observed `before.key`.
  static StatusOr<std::unique_ptr<Segment>> resume(Context &context, const Segment &before, int depth,
                                                   const std::vector<const void *> &slots);

private:
  enum class Next { Step, End };

  Tracer(Context &context, TraceState state, int depth);
  StatusOr<std::unique_ptr<Segment>> run(const std::vector<const void *> &slots);

  StatusOr<Next> step(const StepInfo &step);
  StatusOr<Next> kernelStep(const StepInfo &step);
  Status dimsStep(const StepInfo &step);
  StatusOr<Next> ifStep(const StepInfo &step);
  Status loopStep(const StepInfo &step);
  // On lists: ListSteps.cpp
  StatusOr<Next> listStep(const StepInfo &step);
  Status knowIntegers(const StepInfo &step, size_t operand, bool &isKnown);
  StatusOr<TracedItem> listResult(const StepInfo &step);
  StatusOr<std::vector<TracedItem>> cut(const StepInfo &step, const TracedItem &x, int axis,
                                        std::vector<int64_t> sizes, bool keepsAxis);
  StatusOr<TracedItem> join(const StepInfo &step, const TracedItem &list);
  Status leaveBranch();
  void finishBlock();
  Status observe(int value, const StepInfo &step, bool &isKnownNow);
  Status checkStates(const StepInfo &step, std::span<const TensorInfo> inputs,
                     const InferContext &inferred) const;
  Status checkResults(const StepInfo &step, InferContext &inferred) const;
  bool defineWithoutKernel(const StepInfo &step, std::span<const TensorInfo> inputs, InferContext &inferred);

  bool isConstant(int value) const;
  const TracedValue *find(int value) const;
  TracedItem itemOf(int value) const;
  const TensorInfo &infoOf(int value) const;
  Storage storageOf(int value) const;
  void writeOut(TracedItem &item);
  TracedItem writtenOut(int value);
  Storage bytesOfValue(int value) { return writtenOut(value).storage; }
  Status expectTensor(const StepInfo &step, size_t operand) const;
  void define(int value, TracedItem item);
  void define(int value, TensorInfo info, Storage storage) {
    define(value, TracedItem{std::move(info), storage, false, {}});
  }
  void use(int value, int times = 1);
  void attach(const TracedItem &item, int change);
  Status bindDims(const StepInfo &step, int value, const TensorInfo &info);
  void placeLater(PlacedTensor &place, const TracedItem &item);

  // On devices: DeviceSteps.cpp
  struct RemoteCopy {
    int device, buffer;
  };
  struct DeviceOperand {
    int buffer = -1; // in deviceBuffers
    int weight = -1; // a constant's value id
  };
  int deviceOf(const StepInfo &step, const InferContext &inferred) const;
  Status launchOn(int device, const StepInfo &step, InferContext &inferred);
  Status sendInputs();
  Status sendAhead(int value);
  Status copyIn(int value, int device);
  void copyOut(int value);
  void needHost(int value);
  void comeHome();
  void awaitBuffer(int buffer);
  void await(int device, int command);
  int addCommand(DeviceCommand::Kind kind, int device);
  int newDeviceBuffer(int device, int64_t bytes);
  const RemoteCopy *remoteOn(int value, int device) const;
  void shareRemotes(int from, int to);
  void releaseRemotes(int value);
  Status placeOnDevices();
  Status finishLaunch(Record &record);
  int regionOf(const StepInfo &step) const;

  void startRecord(const StepInfo &step, std::string_view op, size_t inputs, size_t results);
  void addView(const TensorInfo &info, const Storage &storage);
  bool isState(int value) const { return value >= 0 && context.program.values()[size_t(value)].isState; }
  Storage inPlaceStorage(const StepInfo &step, size_t result, int64_t bytes) const;
  Storage newBuffer(const TensorInfo &info);
  void addRecord(const StepInfo &step, std::string_view op, std::span<const TracedItem> inputs,
                 std::span<const TracedItem> results);
  Status addKernel(const StepInfo &step, InferContext &inferred);

  Status place();
  Status finishRecords(const std::vector<const void *> &slots);
  Status finishRecord(Record &record);
  const void *pointerOf(const Storage &storage) const;

  Context &context;
  TraceState state;
  int depth;
  std::unique_ptr<Segment> segment;
  std::vector<TensorInfo> operands;                        // of the step on the way; kept for their memory
  std::vector<Storage> viewStorage;                        // per segment view
  std::vector<std::pair<PlacedTensor *, Storage>> pending; // tensors to point at their place

  std::vector<uint32_t> needs; // devicesThatNeed(); empty where only the CPU is used
  std::unordered_map<int, std::vector<RemoteCopy>> remotes;     // by value
  std::vector<std::vector<TracedBuffer>> deviceBuffers;         // by device
  std::unordered_map<int, std::vector<DeviceOperand>> launches; // by command that launches
  std::unordered_map<int, int> copied;         // by command that copies: the buffer of the device
  std::map<std::pair<int, int>, int> filledBy; // by device and buffer: the command
  std::unordered_map<int, int> arriving; // by host buffer: the command that fills it and was not waited for
  struct Lent {
    int command;
    TracedItem item; // what the command reads or writes, kept alive until it was waited for
  };
  std::vector<Lent> lent;
};

} // namespace dspark
