// Runs a program: one caller at a time, any input shapes the plan allows. Each new combination of input
// shapes is traced once; after that a run of it allocates nothing and only walks records.
#pragma once
#include "planning/CostFeatures.h"
#include "runtime/adapt/LearnedTable.h"
#include "runtime/adapt/PlacementChoice.h"
#include "runtime/adapt/ThreadChoice.h"
#include "runtime/executor/Context.h"
#include "runtime/executor/Strided.h"
#include "runtime/executor/Trace.h"
#include "runtime/executor/Values.h"
#include <atomic>

namespace dspark {

struct SessionOptions {
  int threads = 0;          // 0: as many as the affinity mask and cgroup quota allow
  uint64_t memoryLimit = 0; // bytes for tensors and scratch, weights not counted; 0: what the machine has
  Isa isa = activeIsa();    // no kernel above this level
  /// Chooses per shape, from measured times: which device runs which region where there are devices, else
  /// whether a run uses all threads or one, which changes no results.
  bool adapt = false;
  /// What was learned before is read from this file; "" begins anew. A file of another machine or plan is
  /// ignored, which Session::notes() tells.
  std::string learned;
  /// For simulations: nothing is measured, steps on the CPU take what the generic profile predicts, devices
  /// what they say.
  bool virtualTime = false;
  bool nativeCode = true;          // false: generated code is not loaded, catalogue kernels do its work
  std::vector<DeviceSpec> devices; // plug-ins for the plan's devices; steps of others run on the CPU
  double deviceDeadline = kDeviceDeadline; // seconds until a device that does not answer is given up
};

struct MemoryFigures {
  int64_t arenaBytes = 0;  // planned for the last run's tensors
  int64_t lowerBound = 0;  // the largest live set among them
  uint64_t bytesInUse = 0; // everything this session holds
};

/// What a run has made: a tensor, or a list of such.
struct OutputValue {
  TensorView tensor;
  bool isList = false;
  std::vector<OutputValue> items;
};

/// One kernel call of a traced plan, for people to look at.
struct BoundStep {
  const StepInfo *step;
  const Kernel *kernel;
  std::vector<TensorInfo> results; // absent ones have no type
  std::vector<int64_t> offsets;    // of the results in the arena
  double flops, bytes;
  uint32_t tiles; // of the first phase
  CostFeatures cost;
  int device; // that runs it; the kernel is the CPU's
  /// The call, and which of its operands are constants; valid until a run or bind with other shapes.
  const Record *record;
  uint64_t constants;
};
/// A value on its way from one device to another, one of which is the CPU.
struct BoundTransfer {
  int value;
  int from, to;
  uint64_t bytes;
};
struct BoundPlan {
  std::vector<BoundStep> steps;
  std::vector<BoundTransfer> transfers;
  int64_t arenaBytes = 0, lowerBound = 0;
  double constantBytes = 0;          // of the weights that the steps read, each once
  std::vector<double> valueBytes;    // by value; 0 where nothing tells
  std::vector<uint64_t> deviceBytes; // by device: of its memory, weights not counted
  const StepInfo *endsAt = nullptr;  // the step beyond which only data tells what runs; null: all is bound
};

class Session {
public:
  static StatusOr<std::unique_ptr<Session>> create(std::shared_ptr<const Program> program,
                                                   const SessionOptions &options = {});
  ~Session();

  const Program &program() const { return *plan; }
  int threads() const { return context.pool.threads(); }

  /// Runs on `inputs`, one per program input in order, lent for the call. Afterwards output(k) is valid until
  /// the next run. InvalidArgument names the input and what was expected; OutOfMemory leaves the session
  /// usable. A call while another is running is refused.
  Status run(std::span<const BorrowedTensor> inputs);
  /// The same for inputs of which some may be sequences, optionals or maps.
  Status run(std::span<const BorrowedValue> inputs);
  /// Of an output that is a tensor.
  const TensorView &output(size_t k) const { return outputViews[k].tensor; }
  const OutputValue &outputValue(size_t k) const { return outputViews[k]; }
  size_t outputCount() const { return outputViews.size(); }

  /// Traces the plan for those inputs' shapes as far as shapes alone tell, without running a kernel. Data
  /// pointers must not be null, and are not read.
  StatusOr<BoundPlan> bind(std::span<const BorrowedTensor> inputs);
  StatusOr<BoundPlan> bind(std::span<const BorrowedValue> inputs);

  /// Runs later calls with that placement instead of the compiler's; what it puts on devices that are not
  /// there stays on the CPU.
  void place(Placement placement);
  /// What that comes to; after a run where its steps ran.
  const Placement &placement() const { return context.placement; }
  /// By region, 1 where the last run took the calling thread only; empty: all threads everywhere.
  std::span<const char> serialRegions() const { return context.serialRegions; }
  const SessionDevices &devices() const { return context.devices; }
  /// Writes what adaptation has learned, for this machine and plan.
  Status saveLearned(const std::string &path) const;
  /// What the caller should know and has no other place: devices of the plan that were not given, a learned
  /// table that was ignored.
  const std::vector<std::string> &notes() const { return noted; }
  /// With virtual time: one thread, and all threads, take so many times longer from now on.
  void setVirtualSlowdown(double oneThread, double allThreads) { context.slowdown = {oneThread, allThreads}; }
  /// Seconds by region of the last run that was measured, with SessionOptions::adapt and devices.
  std::span<const double> regionSeconds() const { return regionTimes; }

  /// Adds the CPU time of choosing and learning in later runs to *seconds, which stays the caller's; null
  /// stops that.
  void countAdaptation(double *seconds) { context.adaptSeconds = seconds; }
  /// Measures every record of later runs; null stops that. The profile is the caller's.
  void setProfile(Profile *profile) { context.profile = profile; }
  /// Shows every record of later runs to `observer`, which stays the caller's; null stops that.
  void setObserver(RecordObserver *observer) { context.observer = observer; }
  /// What adaptation has changed since the last call; empty without SessionOptions::adapt.
  std::vector<AdaptEvent> takeAdaptEvents();
  MemoryFigures memory() const;

private:
  struct Bound {
    std::vector<int64_t> key;
    Placement placement;
    std::unique_ptr<Trace> trace;
    uint64_t lastUse;
  };
  Session(std::shared_ptr<const Program> program, const SessionOptions &options, int threads, uint64_t limit);
  std::span<const BorrowedValue> asValues(std::span<const BorrowedTensor> inputs);
  StatusOr<Trace *> traceFor(std::span<const BorrowedValue> inputs);
  Status checkInputs(std::span<const BorrowedValue> inputs, TraceState &state) const;
  Status runAlone(std::span<const BorrowedValue> inputs);
  Status runOnce(std::span<const BorrowedValue> inputs);
  Status readKey(std::span<const BorrowedValue> inputs);
  Status choosePlacement(std::span<const BorrowedValue> inputs);
  void usePlacement(Placement placement);
  Status placeForSizes(std::span<const BorrowedValue> inputs);
  void readLearned(const std::string &path);
  LearnedFor whom() const;
  void leaveDevice(const DeviceFault &fault);
  Status startDevices(const SessionOptions &options);
  Status runAdapted(Trace &trace);
  Status lend(std::span<const BorrowedValue> inputs, Trace &trace);
  Status takeOutputs(const Trace &trace);
  Status takeOutput(const PlacedTensor &result, const Trace &trace, OutputValue &output);
  StatusOr<std::byte *> nextOutputCopy(uint64_t bytes);

  std::shared_ptr<const Program> plan;
  Context context;
  std::vector<Bound> traces;
  std::vector<int64_t> key;
  std::vector<BorrowedValue> values; // inputs that were given as tensors
  std::vector<Block> inputCopies;    // inputs that are not dense
  std::deque<Block> outputCopies;    // what must outlive the run elsewhere: the caller's inputs, strings
  size_t outputCopiesUsed = 0;
  std::vector<OutputValue> outputViews;
  std::unique_ptr<ThreadChoice> threadChoice;       // null: all threads
  std::unique_ptr<PlacementChoice> placementChoice; // null: the compiler's
  std::vector<double> regionTimes;
  bool placesBySizes = false;     // the compiler's choice depends on them, and nothing else was asked for
  std::vector<int64_t> placedFor; // the key of the run that it was looked up for
  std::vector<char> abandoned;    // by device: it has failed, without adaptation
  std::vector<std::string> noted;
  std::vector<AdaptEvent> deviceEvents; // faults without adaptation
  uint64_t runs = 0;
  MemoryFigures figures; // of the last run
  std::atomic<bool> isRunning{false};
};

} // namespace dspark
