// What tracing a block makes: segments of records. A segment is a straight list of kernel calls with
// everything resolved (shapes, kernels, arena offsets), up to a point where only data can tell what comes
// next.
#pragma once
#include "kernels/common/kernel.h"
#include "runtime/device/Device.h"
#include "runtime/executor/Program.h"
#include "runtime/memory/Arena.h"
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

namespace dspark {

class LoopRunner;

/// Where a value's bytes lie.
struct Storage {
  enum class Kind : uint8_t {
    Known,    // nowhere: the contents are known, and are written out once if a kernel wants the bytes
    Slot,     // slots[index] of the running trace: lent by the caller, or made by a loop
    Constant, // at `data`, for as long as the plan or segment lives
    Buffer,   // buffers[index], in the arena
    Remote,   // in the memory of devices only
  };
  Kind kind = Kind::Known;
  int index = -1;
  const void *data = nullptr;
};

/// A tensor during tracing, or a list of such items.
struct TracedItem {
  TensorInfo info; // of a tensor; all dims are numbers
  Storage storage; // of a tensor
  bool isList = false;
  std::vector<TracedItem> items;
};

/// A value during tracing: defined, and still to be used `uses` times.
struct TracedValue : TracedItem {
  int uses = 0;
};

/// An arena buffer during tracing. Its life is in records of the current segment; one that an earlier segment
/// placed starts at -1.
struct TracedBuffer {
  int64_t bytes = 0;
  int64_t offset = -1;
  int first = 0, last = 0;
  int values = 0; // values and items of lists that live in it; dead at 0
};

/// A block on the way, and the If step it belongs to (null for the block that is traced as a whole).
struct Frame {
  const BlockInfo *block;
  size_t next = 0;
  const StepInfo *owner = nullptr;
};

/// Everything tracing knows at one point; what a continuation starts from.
struct TraceState {
  std::unordered_map<int, TracedValue> values;
  std::vector<TracedBuffer> buffers;
  std::vector<Frame> frames;
  std::vector<Dim> symbols, expressions;
  int slots = 0;
};

/// What the session has a device do, or waits for.
struct DeviceCommand {
  enum class Kind : uint8_t { CopyIn, CopyOut, Launch, Wait };
  Kind kind = Kind::Wait;
  int device = 0;
  int64_t offset = 0;                  // of copies: in the segment's block of the device
  uint64_t bytes = 0;                  // of copies; the host's side is the record's view
  double seconds = 0;                  // of copies, as the device's facts predict
  int awaited = -1;                    // of Wait: the command
  int region = -1;                     // that it is counted to
  int value = -1;                      // of copies
  dspark_device_ticket ticket = 0;     // in the run going on
  std::unique_ptr<PreparedStep> ready; // of Launch
};

/// One kernel call, or one command to a device.
struct Record {
  const Kernel *kernel = nullptr; // of copies and waits: null. What a device launches has the CPU's kernel
  const StepInfo *step = nullptr; // of copies and waits: null
  int command = -1;               // in Segment::commands; -1: the CPU runs the kernel
  int region = -1;                // of the plan
  double predicted[2] = {0, 0};   // seconds with one thread and all; only where the session's time is virtual
  std::string_view op;            // the step's, or what a step on a list needs done
  uint32_t firstView = 0, inputs = 0, outputs = 0; // in Segment::views
  bool isSmall = false;                            // runs on the calling thread
  bool hasStrings = false;
  KernelCall call;
  KernelWork work;
};

/// A tensor whose pointer is known only when the trace runs, or a list of them.
struct PlacedTensor {
  TensorInfo info;
  std::vector<int64_t> dims;
  int slot = -1;              // if >= 0, the pointer is in that slot
  const void *data = nullptr; // otherwise
  bool isList = false;
  std::vector<PlacedTensor> items;

  const void *pointer(const void *const *slots) const { return slot >= 0 ? slots[slot] : data; }
};

enum class SegmentEnd : uint8_t {
  Return,   // the block's results are `results`
  Contents, // what follows depends on the contents of `observed`
  Dims,     // the last record decides the dims of its results
  Loop,     // `loop` runs, then the dims of its results are known
};

struct Segment;
struct Continuation {
  std::vector<int64_t> key; // the observed numbers
  std::unique_ptr<Segment> segment;
  uint64_t lastUse = 0;
};

struct Segment {
  /// `liveSegments` counts the segments that exist.
  explicit Segment(int &liveSegments);
  ~Segment();

  std::vector<Record> records;
  std::vector<TensorView> views;
  std::vector<std::unique_ptr<DeviceMemory>> blocks; // by device; null where none is used
  std::vector<DeviceCommand> commands;
  struct Patch {
    uint32_t view;
    int slot;
  };
  std::vector<Patch> patches;
  std::vector<int64_t> dims;                    // of the views, one behind the other
  std::deque<std::vector<std::byte>> constants; // written-out known contents

  SegmentEnd end = SegmentEnd::Return;
  const StepInfo *endStep = nullptr; // the step that the end belongs to; null for Return
  std::vector<PlacedTensor> results;
  int observedValue = -1;
  PlacedTensor observed;
  std::vector<int64_t> kernelDims; // what the kernel writes, all results in a row
  std::vector<int64_t *> kernelDimPointers;
  std::unique_ptr<LoopRunner> loop;

  TraceState after; // empty for Return
  std::vector<Continuation> continuations;
  std::vector<int64_t> key; // of the run going on

  int64_t arenaBytes = 0, lowerBound = 0; // of this segment with what earlier ones placed
  int &liveSegments;
};

} // namespace dspark
