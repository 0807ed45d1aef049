#include "runtime/executor/Session.h"
#include "runtime/executor/Contents.h"
#include "runtime/executor/CpuLimits.h"
#include <algorithm>
#include <cstring>

namespace dspark {
namespace {

constexpr size_t kMaxTraces = 16;         // input shape combinations kept
constexpr int kMaxLiveSegments = 1 << 14; // beyond, all traces are dropped before the next run
constexpr uint64_t kLargestLimit = uint64_t(1) << 44;
constexpr int kMaxThreads = 1024;

} // namespace

Session::Session(std::shared_ptr<const Program> program, const SessionOptions &options, int threads,
                 uint64_t limit)
    : plan(std::move(program)),
      context(*plan, threads, limit, std::min(options.isa, machineIsa()), options.nativeCode) {
  for (size_t i = 0; i < plan->inputs().size(); ++i)
    inputCopies.emplace_back(context.budget);
  for (size_t i = 0; i < plan->outputs().size(); ++i)
    outputCopies.emplace_back(context.budget);
  outputViews.resize(plan->outputs().size());
}

Session::~Session() = default;

StatusOr<std::unique_ptr<Session>> Session::create(std::shared_ptr<const Program> program,
                                                   const SessionOptions &options) {
  if (options.threads < 0 || options.threads > kMaxThreads)
    return invalidArgument("threads is " + std::to_string(options.threads) + ", expected 0 to " +
                           std::to_string(kMaxThreads));
  int threads = options.threads > 0 ? options.threads : defaultThreads();
  uint64_t limit = std::min(options.memoryLimit > 0 ? options.memoryLimit : machineMemory(), kLargestLimit);
  return std::unique_ptr<Session>(new Session(std::move(program), options, threads, limit));
}

// Types, ranks and dims against the declaration; dims that are symbols bind them.
Status Session::checkInputs(std::span<const BorrowedTensor> inputs, TraceState &state) const {
  const Program &program = *plan;
  state.symbols.assign(program.symbolCount(), Dim());
  std::vector<size_t> boundBy(program.symbolCount(), 0);
  auto what = [&](size_t i) {
    return "input '" + std::string(program.values()[size_t(program.inputs()[i])].name) + "'";
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ValueInfo &declared = program.values()[size_t(program.inputs()[i])];
    const BorrowedTensor &found = inputs[i];
    if (found.type != declared.type)
      return invalidArgument(what(i) + " has type " + std::string(dtypeName(found.type)) + ", expected " +
                             std::string(dtypeName(declared.type)));
    if (found.rank != int(declared.dims.size()))
      return invalidArgument(what(i) + " has rank " + std::to_string(found.rank) + ", expected " +
                             std::to_string(declared.dims.size()));
    for (size_t d = 0; d < declared.dims.size(); ++d) {
      if (found.dims[d] < 0)
        return invalidArgument(what(i) + ": dim " + std::to_string(d) + " is " +
                               std::to_string(found.dims[d]) + ", expected 0 or more");
      int symbol = program.symbolOf(declared.dims[d]);
      if (symbol >= 0 && state.symbols[size_t(symbol)].isUnknown()) {
        state.symbols[size_t(symbol)] = Dim(found.dims[d]);
        boundBy[size_t(symbol)] = i;
      }
    }
  }
  program.evaluate(state.symbols, state.expressions);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ValueInfo &declared = program.values()[size_t(program.inputs()[i])];
    std::vector<Dim> dims(inputs[i].dims, inputs[i].dims + inputs[i].rank);
    for (size_t d = 0; d < dims.size(); ++d) {
      Dim expected = state.expressions[size_t(declared.dims[d])];
      if (expected.isUnknown() || expected.provablyEqual(dims[d]))
        continue;
      int symbol = program.symbolOf(declared.dims[d]);
      bool isNumber = program.dimText(declared.dims[d]) == expected.str();
      return invalidArgument(what(i) + ": dim " + std::to_string(d) + " is " + dims[d].str() + ", expected " +
                             expected.str() +
                             (isNumber ? "" : " (" + program.dimText(declared.dims[d]) + ")") +
                             (symbol >= 0 ? " as in " + what(boundBy[size_t(symbol)]) : ""));
    }
    TensorInfo info = TensorInfo::make(inputs[i].type, std::move(dims));
    int64_t count = elementCount(info.dims);
    if (count < 0 || uint64_t(count) > kLargestLimit)
      return invalidArgument(what(i) + " is " + info.str() + ", larger than any memory");
    if (count > 0 && !inputs[i].data)
      return invalidArgument(what(i) + " has no data");
    if (!isDense(inputs[i]) && dtypeBits(inputs[i].type) % 8 != 0)
      return Status(Code::Unsupported, what(i) + " is " + info.str() + " with strides, expected it dense");
    Storage storage{Storage::Kind::Slot, state.slots++, nullptr};
    int value = program.inputs()[i];
    state.values[value] = {std::move(info), storage, program.values()[size_t(value)].uses};
  }
  return Status::ok();
}

StatusOr<Trace *> Session::traceFor(std::span<const BorrowedTensor> inputs) {
  if (inputs.size() != plan->inputs().size())
    return invalidArgument("there are " + std::to_string(inputs.size()) + " inputs, expected " +
                           std::to_string(plan->inputs().size()));
  key.clear();
  for (const BorrowedTensor &input : inputs) {
    if (input.rank < 0 || input.rank > kMaxRank || (input.rank > 0 && !input.dims))
      return invalidArgument("an input has rank " + std::to_string(input.rank) + ", expected 0 to " +
                             std::to_string(kMaxRank) + " and dims");
    // Whether data and strides are in order is not part of the shape; a run without a traced shape checks
    // them, and one with must not skip that.
    key.push_back(int64_t(input.type) << 8 | input.rank);
    key.push_back(input.data != nullptr);
    key.push_back(isDense(input));
    key.insert(key.end(), input.dims, input.dims + input.rank);
  }
  ++context.clock;
  for (Bound &bound : traces)
    if (bound.key == key) {
      bound.lastUse = context.clock;
      return bound.trace.get();
    }
  if (context.liveSegments > kMaxLiveSegments)
    traces.clear();
  TraceState state;
  DSPARK_RETURN_IF_ERROR(checkInputs(inputs, state));
  state.frames.push_back({&plan->body()});
  std::vector<const void *> slots;
  for (const BorrowedTensor &input : inputs)
    slots.push_back(input.data);
  DSPARK_ASSIGN_OR_RETURN(auto trace, Trace::create(context, std::move(state), 0, std::move(slots)));
  if (traces.size() >= kMaxTraces)
    traces.erase(std::min_element(traces.begin(), traces.end(),
                                  [](auto &a, auto &b) { return a.lastUse < b.lastUse; }));
  traces.push_back({key, std::move(trace), context.clock});
  return traces.back().trace.get();
}

Status Session::lend(std::span<const BorrowedTensor> inputs, Trace &trace) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    trace.slots[i] = inputs[i].data;
    if (isDense(inputs[i]))
      continue;
    int64_t elements = 1;
    for (int d = 0; d < inputs[i].rank; ++d)
      elements *= inputs[i].dims[d];
    DSPARK_RETURN_IF_ERROR(
        inputCopies[i].ensure(uint64_t(dtypeBytes(inputs[i].type, elements)), "a copy of an input"));
    copyStridedToDense(inputs[i], inputCopies[i].data());
    trace.slots[i] = inputCopies[i].data();
  }
  return Status::ok();
}

Status Session::takeOutputs(const Trace &trace) {
  for (size_t k = 0; k < outputViews.size(); ++k) {
    const PlacedTensor &result = trace.results()[k];
    const void *data = result.pointer(trace.slots.data());
    uint64_t bytes = uint64_t(dtypeBytes(result.info.type, elementCount(result.info.dims)));
    // The caller's memory is only lent for the run.
    if (result.slot >= 0 && result.slot < int(plan->inputs().size())) {
      DSPARK_RETURN_IF_ERROR(outputCopies[k].ensure(bytes, "a copy of an input"));
      if (bytes > 0)
        std::memcpy(outputCopies[k].data(), data, bytes);
      data = outputCopies[k].data();
    }
    outputViews[k] = {const_cast<void *>(data), result.dims.data(), int32_t(result.dims.size()),
                      result.info.type};
  }
  return Status::ok();
}

Status Session::run(std::span<const BorrowedTensor> inputs) {
  if (isRunning.exchange(true))
    return invalidArgument("the session is running; use one session per thread");
  struct Guard {
    std::atomic<bool> &flag;
    ThreadPool &pool;
    ~Guard() {
      pool.endRun();
      flag.store(false);
    }
  } guard{isRunning, context.pool};
  DSPARK_ASSIGN_OR_RETURN(Trace * trace, traceFor(inputs));
  DSPARK_RETURN_IF_ERROR(lend(inputs, *trace));
  context.pool.beginRun();
  DSPARK_RETURN_IF_ERROR(trace->run());
  figures.arenaBytes = trace->lastSegment().arenaBytes;
  figures.lowerBound = trace->lastSegment().lowerBound;
  return takeOutputs(*trace);
}

StatusOr<BoundPlan> Session::bind(std::span<const BorrowedTensor> inputs) {
  DSPARK_ASSIGN_OR_RETURN(Trace * trace, traceFor(inputs));
  const Segment &segment = trace->firstSegment();
  BoundPlan bound;
  bound.arenaBytes = segment.arenaBytes;
  bound.lowerBound = segment.lowerBound;
  bound.endsAt = segment.endStep;
  for (const Record &record : segment.records) {
    BoundStep step{record.step,       record.kernel,       {}, {}, record.work.flops,
                   record.work.bytes, record.work.tiles[0]};
    for (const TensorView &view : record.call.out) {
      TensorInfo info;
      if (view.present())
        info = TensorInfo::make(view.type, std::vector<Dim>(view.dims, view.dims + view.rank));
      step.results.push_back(std::move(info));
      step.offsets.push_back(static_cast<const std::byte *>(view.data) - context.arena(0).at(0));
    }
    bound.steps.push_back(std::move(step));
  }
  return bound;
}

MemoryFigures Session::memory() const {
  MemoryFigures now = figures;
  now.bytesInUse = context.budget.inUse();
  return now;
}

} // namespace dspark
