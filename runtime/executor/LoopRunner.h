// Runs a Loop step (docs/plan-format.md): the body is traced once per shape of the carried values and run per
// iteration. Carried values are copied out of the body's arena between iterations; scan outputs are stacked
// as they come.
#pragma once
#include "runtime/executor/Context.h"
#include "runtime/executor/Segment.h"
#include "runtime/executor/Trace.h"
#include "runtime/executor/Values.h"

namespace dspark {

class LoopRunner {
public:
  /// `depth` is that of the trace the loop is in; its body runs one deeper. `outer` is the state at the step.
  LoopRunner(Context &context, const StepInfo &step, const TraceState &outer, int depth);
  ~LoopRunner();

  /// To be filled by the tracer: the step's operands, and the values that the body uses from outside in the
  /// order of its captures. A capture that lies nowhere (null data, no slot) has known contents.
  std::vector<PlacedTensor> operands, captures;

  Status run(const void *const *slots);
  /// Carried values, then scan outputs; valid until the next run.
  const std::vector<LiveValue> &outputs() const { return results; }
  /// Whether that operand may be a list.
  bool isCarried(size_t operand) const { return operand >= 2 && operand < 2 + carriedCount; }

private:
  struct Carried {
    Carried(MemoryBudget &budget) : buffers{Block(budget), Block(budget)} {}
    Block buffers[2];
    int active = -1; // the buffer that holds the value; -1: it is the initial one, elsewhere
    std::vector<std::shared_ptr<Block>> owners; // of a list: each tensor's memory; null: it lies elsewhere
  };
  /// A list that an iteration has made, before the one that it was made from is given up.
  struct NextList {
    size_t index;
    LiveValue value;
    std::vector<std::shared_ptr<Block>> owners;
  };
  struct ScanOutput {
    ScanOutput(MemoryBudget &budget) : slices(budget), stacked(budget) {}
    Block slices, stacked;
    std::vector<int64_t> sliceDims;
    DType type = DType::Undefined;
    int64_t axis = 0;
    bool isReversed = false;
    uint64_t sliceBytes = 0;
  };
  struct ScanInput {
    ScanInput(MemoryBudget &budget) : slice(budget) {}
    Block slice;
    int64_t axis = 0;
    bool isReversed = false;
    int64_t length = 0;
    uint64_t outer = 1, sliceRun = 0; // slices are `outer` runs of sliceRun bytes, `length` runs apart
    std::vector<int64_t> sliceDims;
  };
  struct Body {
    std::vector<int64_t> key;
    std::unique_ptr<Trace> trace;
    uint64_t lastUse;
  };

  Status here(Status status) const;
  Status prepareScanInputs();
  Status tripCount(const void *const *slots, int64_t &trips, bool &goOn) const;
  StatusOr<Trace *> bodyFor();
  TraceState bodyState() const;
  Status slice(ScanInput &input, const std::byte *base, int64_t trips, const void *&pointer);
  Status takeCarried(size_t index, const PlacedTensor &result, const void *const *slots);
  Status takeItem(const PlacedTensor &item, const void *const *slots, NextList &list);
  Status leaveOperand(size_t index);
  void addCarriedSlots(Trace &trace, size_t &next);
  Status takeSlice(ScanOutput &output, const PlacedTensor &result, const void *pointer, int64_t trip);
  Status stack(ScanOutput &output, int64_t trips, LiveValue &result);
  Status emptySlices();

  Context &context;
  const StepInfo &step;
  const BlockInfo &body;
  int depth;
  std::vector<Dim> symbols, expressions;
  size_t carriedCount, scanInputCount;
  bool hasCondition;

  std::vector<Carried> carried;
  std::vector<ScanInput> scanInputs;
  std::vector<ScanOutput> scanOutputs;
  std::vector<LiveValue> results; // the first ones are the carried values of the iteration going on
  std::vector<std::shared_ptr<Block>>
      slotOwners;           // per slot of the body: the memory of a carried list's tensor
  std::vector<bool> isKept; // per slot: of a carried list, so that it may stay where it is
  std::vector<NextList> nextLists;
  std::vector<Body> bodies;
  std::vector<int64_t> key;
  int64_t iteration = 0;
  uint8_t condition = 1;
};

} // namespace dspark
