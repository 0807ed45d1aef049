// Traces a block for concrete shapes: walks its steps once, runs their shape functions on numbers, takes the
// branches whose condition is known, plans buffers and selects kernels. What comes out is one Segment; where
// only data can tell how to go on, the segment ends and Tracer::resume makes the next one when that data has
// been seen.
#pragma once
#include "runtime/executor/Context.h"
#include "runtime/executor/Segment.h"

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
  void loopStep(const StepInfo &step);
  Status leaveBranch();
  void finishBlock();
  Status observe(int value, const StepInfo &step, bool &isKnownNow);
  Status checkResults(const StepInfo &step, InferContext &inferred) const;
  bool defineWithoutKernel(const StepInfo &step, std::span<const TensorInfo> inputs, InferContext &inferred);

  const TracedValue *find(int value) const;
  TensorInfo infoOf(int value) const;
  Storage storageOf(int value) const;
  Storage bytesOfValue(int value);
  void define(int value, TensorInfo info, Storage storage);
  void use(int value, int times = 1);
  void attach(const Storage &storage, int change);
  Status bindDims(const StepInfo &step, int value, const TensorInfo &info);
  PlacedTensor &placeLater(std::vector<PlacedTensor> &list, int value);

  uint32_t addView(const TensorInfo &info, const Storage &storage);
  int inPlaceBuffer(const StepInfo &step, int64_t bytes) const;
  Status addRecord(const StepInfo &step, InferContext &inferred);

  Status place();
  Status finishRecords(const std::vector<const void *> &slots);
  Status finishRecord(Record &record);
  const void *pointerOf(const Storage &storage) const;

  Context &context;
  TraceState state;
  int depth;
  std::unique_ptr<Segment> segment;
  std::vector<Storage> viewStorage;                        // per segment view
  std::vector<std::pair<PlacedTensor *, Storage>> pending; // tensors to point at their place
};

} // namespace dspark
