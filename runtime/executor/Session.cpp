#include "runtime/executor/Session.h"
#include "runtime/executor/Contents.h"
#include "runtime/executor/CpuLimits.h"
#include "runtime/executor/MachineModel.h"
#include "runtime/executor/Stopwatch.h"
#include "runtime/format/Hash.h"
#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

namespace dspark {
namespace {

constexpr size_t kMaxTraces = 128;        // input shape combinations kept
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
  outputViews.resize(plan->outputs().size());
  if (options.adapt && threads > 1)
    threadChoice = std::make_unique<ThreadChoice>(context.pool);
}

Session::~Session() = default;

StatusOr<std::unique_ptr<Session>> Session::create(std::shared_ptr<const Program> program,
                                                   const SessionOptions &options) {
  if (options.threads < 0 || options.threads > kMaxThreads)
    return invalidArgument("threads is " + std::to_string(options.threads) + ", expected 0 to " +
                           std::to_string(kMaxThreads));
  int threads = options.threads > 0 ? options.threads : defaultThreads();
  uint64_t limit = std::min(options.memoryLimit > 0 ? options.memoryLimit : machineMemory(), kLargestLimit);
  std::unique_ptr<Session> session(new Session(std::move(program), options, threads, limit));
  if (!options.devices.empty())
    DSPARK_RETURN_IF_ERROR(
        session->context.devices.open(*session->plan, options.devices, options.deviceDeadline));
  DSPARK_RETURN_IF_ERROR(session->startDevices(options));
  return session;
}

namespace {

Status checkTensor(const BorrowedTensor &tensor, const std::string &what) {
  TensorInfo info = TensorInfo::make(tensor.type, std::vector<Dim>(tensor.dims, tensor.dims + tensor.rank));
  for (int d = 0; d < tensor.rank; ++d)
    if (tensor.dims[d] < 0)
      return invalidArgument(what + ": dim " + std::to_string(d) + " is " + std::to_string(tensor.dims[d]) +
                             ", expected 0 or more");
  int64_t count = elementCount(info.dims);
  if (count < 0 || uint64_t(count) > kLargestLimit)
    return invalidArgument(what + " is " + info.str() + ", larger than any memory");
  if (count > 0 && !tensor.data)
    return invalidArgument(what + " has no data");
  if (!isDense(tensor) && dtypeBits(tensor.type) % 8 != 0)
    return Status(Code::Unsupported, what + " is " + info.str() + " with strides, expected it dense");
  return Status::ok();
}

// A list, or an item of one, against its declared type.
Status checkItem(const BorrowedValue &value, const fb::ValueType &type, const std::string &what) {
  if (value.isList != (type.kind() != fb::TypeKind::Tensor))
    return invalidArgument(
        what + (value.isList ? " is a list, expected a tensor" : " is a tensor, expected a list of items"));
  if (!value.isList) {
    const BorrowedTensor &found = value.tensor;
    if (found.type != DType(type.dtype()))
      return invalidArgument(what + " has type " + std::string(dtypeName(found.type)) + ", expected " +
                             std::string(dtypeName(DType(type.dtype()))));
    if (type.rank() >= 0 && found.rank != type.rank())
      return invalidArgument(what + " has rank " + std::to_string(found.rank) + ", expected " +
                             std::to_string(type.rank()));
    for (int d = 0; d < type.rank(); ++d)
      if (int64_t declared = type.dims()->Get(unsigned(d)); declared >= 0 && declared != found.dims[d])
        return invalidArgument(what + ": dim " + std::to_string(d) + " is " + std::to_string(found.dims[d]) +
                               ", expected " + std::to_string(declared));
    return checkTensor(found, what);
  }
  bool isMap = type.kind() == fb::TypeKind::Map;
  size_t most = isMap ? 2 : type.kind() == fb::TypeKind::Optional ? 1 : kMaxListTensors;
  if (value.count > most || (isMap && value.count != 2))
    return invalidArgument(what + " has " + std::to_string(value.count) + " items, expected " +
                           (isMap ? "keys and values" : "at most " + std::to_string(most)));
  for (size_t i = 0; i < value.count; ++i)
    DSPARK_RETURN_IF_ERROR(checkItem(value.items[i], *type.items()->Get(isMap ? unsigned(i) : 0),
                                     what + "[" + std::to_string(i) + "]"));
  if (isMap && (value.items[0].tensor.rank != 1 || value.items[1].tensor.rank < 1 ||
                value.items[0].tensor.dims[0] != value.items[1].tensor.dims[0]))
    return invalidArgument(what + " is a map with as many keys as values expected, both of rank 1");
  return Status::ok();
}

// Ranks first: the key of a trace reads dims.
Status appendKey(const BorrowedValue &value, std::vector<int64_t> &key, int depth) {
  if (value.isList) {
    if (depth == kMaxListDepth || value.count > kMaxListTensors || (value.count > 0 && !value.items))
      return invalidArgument("an input is a list of " + std::to_string(value.count) + " items at depth " +
                             std::to_string(depth) + ", expected at most " + std::to_string(kMaxListTensors) +
                             " items, " + std::to_string(kMaxListDepth) + " lists deep");
    key.push_back(-1 - int64_t(value.count));
    for (size_t i = 0; i < value.count; ++i)
      DSPARK_RETURN_IF_ERROR(appendKey(value.items[i], key, depth + 1));
    return Status::ok();
  }
  const BorrowedTensor &input = value.tensor;
  if (input.rank < 0 || input.rank > kMaxRank || (input.rank > 0 && !input.dims))
    return invalidArgument("an input has rank " + std::to_string(input.rank) + ", expected 0 to " +
                           std::to_string(kMaxRank) + " and dims");
  // Whether data and strides are in order is not part of the shape; a run without a traced shape checks
  // them, and one with must not skip that.
  key.push_back(int64_t(input.type) << 8 | input.rank);
  key.push_back(input.data != nullptr);
  key.push_back(isDense(input));
  key.insert(key.end(), input.dims, input.dims + input.rank);
  return Status::ok();
}

LiveValue liveForm(const BorrowedValue &value) {
  LiveValue live;
  live.isList = value.isList;
  for (size_t i = 0; i < value.count && value.isList; ++i)
    live.items.push_back(liveForm(value.items[i]));
  if (!value.isList) {
    live.type = value.tensor.type;
    live.dims.assign(value.tensor.dims, value.tensor.dims + value.tensor.rank);
  }
  return live;
}

template <typename F> void forTensors(const BorrowedValue &value, F &&f) {
  if (!value.isList)
    return f(value.tensor);
  for (size_t i = 0; i < value.count; ++i)
    forTensors(value.items[i], f);
}

} // namespace

// Types, ranks and dims against the declaration; dims that are symbols bind them.
Status Session::checkInputs(std::span<const BorrowedValue> inputs, TraceState &state) const {
  const Program &program = *plan;
  state.symbols.assign(program.symbolCount(), Dim());
  std::vector<size_t> boundBy(program.symbolCount(), 0);
  auto what = [&](size_t i) {
    return "input '" + std::string(program.values()[size_t(program.inputs()[i])].name) + "'";
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ValueInfo &declared = program.values()[size_t(program.inputs()[i])];
    if (declared.typeTree) {
      DSPARK_RETURN_IF_ERROR(checkItem(inputs[i], *declared.typeTree, what(i)));
      continue;
    }
    if (inputs[i].isList)
      return invalidArgument(what(i) + " is a list, expected a tensor");
    const BorrowedTensor &found = inputs[i].tensor;
    if (found.type != declared.type)
      return invalidArgument(what(i) + " has type " + std::string(dtypeName(found.type)) + ", expected " +
                             std::string(dtypeName(declared.type)));
    if (found.rank != int(declared.dims.size()))
      return invalidArgument(what(i) + " has rank " + std::to_string(found.rank) + ", expected " +
                             std::to_string(declared.dims.size()));
    DSPARK_RETURN_IF_ERROR(checkTensor(found, what(i)));
    if (declared.isState && !isDense(found))
      return invalidArgument(what(i) + " is a state with strides, expected it dense");
    for (size_t d = 0; d < declared.dims.size(); ++d) {
      int symbol = program.symbolOf(declared.dims[d]);
      if (symbol >= 0 && state.symbols[size_t(symbol)].isUnknown()) {
        state.symbols[size_t(symbol)] = Dim(found.dims[d]);
        boundBy[size_t(symbol)] = i;
      }
    }
  }
  program.evaluate(state.symbols, state.expressions);
  for (size_t i = 0; i < inputs.size(); ++i) {
    int value = program.inputs()[i];
    const ValueInfo &declared = program.values()[size_t(value)];
    state.values[value] = {inSlots(liveForm(inputs[i]), state.slots), declared.uses};
    const std::vector<Dim> &dims = state.values[value].info.dims;
    for (size_t d = 0; d < dims.size() && !declared.typeTree; ++d) {
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
  }
  return Status::ok();
}

Status Session::readKey(std::span<const BorrowedValue> inputs) {
  if (inputs.size() != plan->inputs().size())
    return invalidArgument("there are " + std::to_string(inputs.size()) + " inputs, expected " +
                           std::to_string(plan->inputs().size()));
  key.clear();
  for (const BorrowedValue &input : inputs)
    DSPARK_RETURN_IF_ERROR(appendKey(input, key, 0));
  return Status::ok();
}

StatusOr<Trace *> Session::traceFor(std::span<const BorrowedValue> inputs) {
  DSPARK_RETURN_IF_ERROR(readKey(inputs));
  ++context.clock;
  for (Bound &bound : traces)
    if (bound.key == key && bound.placement == context.placement) {
      bound.lastUse = context.clock;
      return bound.trace.get();
    }
  if (context.liveSegments > kMaxLiveSegments)
    traces.clear();
  TraceState state;
  DSPARK_RETURN_IF_ERROR(checkInputs(inputs, state));
  state.frames.push_back({&plan->body()});
  std::vector<const void *> slots;
  for (const BorrowedValue &input : inputs)
    forTensors(input, [&](const BorrowedTensor &tensor) { slots.push_back(tensor.data); });
  StatusOr<std::unique_ptr<Trace>> made = Trace::create(context, state, 0, slots);
  if (!made.isOk() && made.status().code() == Code::OutOfMemory && context.devices.fault().device != 0) {
    // Devices also hold what other placements and shapes need.
    std::erase_if(traces, [](const Bound &bound) { return !bound.placement.empty(); });
    context.devices.keepWeightsOf(*plan, context.placement);
    context.devices.takeFault();
    made = Trace::create(context, std::move(state), 0, std::move(slots));
  }
  if (!made.isOk())
    return made.status();
  std::unique_ptr<Trace> trace = std::move(*made);
  if (traces.size() >= kMaxTraces)
    traces.erase(std::min_element(traces.begin(), traces.end(),
                                  [](auto &a, auto &b) { return a.lastUse < b.lastUse; }));
  traces.push_back({key, context.placement, std::move(trace), context.clock});
  return traces.back().trace.get();
}

Status Session::lend(std::span<const BorrowedValue> inputs, Trace &trace) {
  size_t slot = 0;
  Status status;
  auto lendTensor = [&](const BorrowedTensor &tensor) {
    size_t place = slot++;
    trace.slots[place] = tensor.data;
    int64_t elements = 1;
    for (int d = 0; d < tensor.rank; ++d)
      elements *= tensor.dims[d];
    if (!isDense(tensor) && status.isOk()) {
      while (inputCopies.size() <= place)
        inputCopies.emplace_back(context.budget);
      Block &copy = inputCopies[place];
      status = copy.ensure(uint64_t(dtypeBytes(tensor.type, elements)), "a copy of an input");
      if (status.isOk()) {
        copyStridedToDense(tensor, copy.data());
        trace.slots[place] = copy.data();
      }
    }
    if (tensor.type == DType::String && status.isOk())
      for (auto *text = static_cast<const StringElement *>(trace.slots[place]); elements-- > 0; ++text)
        if (!text->data && text->size > 0)
          status = invalidArgument("a string of an input has " + std::to_string(text->size) +
                                   " bytes and no data");
  };
  for (const BorrowedValue &input : inputs)
    forTensors(input, lendTensor);
  return status;
}

StatusOr<std::byte *> Session::nextOutputCopy(uint64_t bytes) {
  if (outputCopiesUsed == outputCopies.size())
    outputCopies.emplace_back(context.budget);
  Block &block = outputCopies[outputCopiesUsed++];
  DSPARK_RETURN_IF_ERROR(block.ensure(bytes, "a copy of an output"));
  return block.data();
}

// Results of kernels are handed out where they lie. The caller's memory is only lent for the run, and strings
// may point into it, so these are copied.
Status Session::takeOutput(const PlacedTensor &result, const Trace &trace, OutputValue &output) {
  output.isList = result.isList;
  output.items.resize(result.items.size());
  for (size_t i = 0; i < result.items.size(); ++i)
    DSPARK_RETURN_IF_ERROR(takeOutput(result.items[i], trace, output.items[i]));
  if (result.isList)
    return Status::ok();
  const void *data = result.pointer(trace.slots.data());
  int64_t count = elementCount(result.info.dims);
  uint64_t bytes = uint64_t(dtypeBytes(result.info.type, count));
  if (result.info.type == DType::String) {
    auto *from = static_cast<const StringElement *>(data);
    uint64_t characters = 0;
    for (int64_t i = 0; i < count; ++i)
      characters += from[i].size;
    DSPARK_ASSIGN_OR_RETURN(std::byte * copy, nextOutputCopy(bytes + characters));
    auto *text = reinterpret_cast<char *>(copy + bytes);
    for (int64_t i = 0; i < count; ++i) {
      if (from[i].size > 0)
        std::memcpy(text, from[i].data, from[i].size);
      reinterpret_cast<StringElement *>(copy)[i] = std::string_view(text, from[i].size);
      text += from[i].size;
    }
    data = copy;
  } else if (result.slot >= 0 && result.slot < trace.argumentSlots()) {
    DSPARK_ASSIGN_OR_RETURN(std::byte * copy, nextOutputCopy(bytes));
    if (bytes > 0)
      std::memcpy(copy, data, bytes);
    data = copy;
  }
  output.tensor = {const_cast<void *>(data), result.dims.data(), int32_t(result.dims.size()),
                   result.info.type};
  return Status::ok();
}

Status Session::takeOutputs(const Trace &trace) {
  outputCopiesUsed = 0;
  for (size_t k = 0; k < outputViews.size(); ++k)
    DSPARK_RETURN_IF_ERROR(takeOutput(trace.results()[k], trace, outputViews[k]));
  return Status::ok();
}

std::span<const BorrowedValue> Session::asValues(std::span<const BorrowedTensor> inputs) {
  values.resize(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    values[i].tensor = inputs[i];
  return values;
}

namespace {

// One run at a time.
class Turn {
public:
  Turn(std::atomic<bool> &isRunning, ThreadPool &pool)
      : flag(isRunning), pool(pool), mine(!flag.exchange(true)) {}
  ~Turn() {
    if (!mine)
      return;
    pool.endRun();
    flag.store(false);
  }
  Status status() const {
    return mine ? Status::ok() : invalidArgument("the session is running; use one session per thread");
  }

private:
  std::atomic<bool> &flag;
  ThreadPool &pool;
  bool mine;
};

} // namespace

Status Session::run(std::span<const BorrowedTensor> inputs) {
  Turn turn(isRunning, context.pool);
  DSPARK_RETURN_IF_ERROR(turn.status());
  return runAlone(asValues(inputs));
}

Status Session::run(std::span<const BorrowedValue> inputs) {
  Turn turn(isRunning, context.pool);
  DSPARK_RETURN_IF_ERROR(turn.status());
  return runAlone(inputs);
}

// A bucket is one combination of input shapes. Its first run is seeded by the cost model, as far as shapes
// alone tell what runs.
Status Session::runAdapted(Trace &trace) {
  auto bucket = int64_t(hashBytes(std::as_bytes(std::span(key))));
  if (!threadChoice->knows(bucket)) {
    double one = 0, all = 0, footprint = double(trace.firstSegment().lowerBound);
    for (const Record &record : trace.firstSegment().records) {
      if (!record.kernel)
        continue;
      CostFeatures f = costFeatures(*record.kernel, record.call, record.work, 0);
      one += modelOfThisMachine().predict(f, footprint, 1);
      all += modelOfThisMachine().predict(f, footprint, context.pool.threads());
    }
    threadChoice->seed(bucket, std::max(one, 1e-9), std::max(all, 1e-9));
  }
  context.isSerial = threadChoice->isSerial(bucket);
  auto start = std::chrono::steady_clock::now();
  if (!context.isSerial)
    context.pool.beginRun();
  Status status = trace.run();
  std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  context.isSerial = false;
  if (status.isOk())
    threadChoice->report(taken.count());
  return status;
}

std::vector<AdaptEvent> Session::takeAdaptEvents() {
  if (threadChoice)
    return threadChoice->takeEvents();
  return placementChoice ? placementChoice->takeEvents() : std::exchange(deviceEvents, {});
}

// A run that a device fails is repeated without it, from the start: inputs are only lent and nothing else has
// changed.
Status Session::runAlone(std::span<const BorrowedValue> inputs) {
  for (++runs;;) {
    if (placementChoice) {
      Stopwatch watch(context.adaptSeconds);
      DSPARK_RETURN_IF_ERROR(choosePlacement(inputs));
    } else if (placesBySizes) {
      DSPARK_RETURN_IF_ERROR(placeForSizes(inputs));
    }
    Status status = runOnce(inputs);
    bool isMeasured = std::exchange(context.regionTimes, nullptr) && !context.profile && !context.observer;
    context.isSerial = false;
    DeviceFault fault = context.devices.takeFault();
    if (status.isOk() && isMeasured) {
      Stopwatch watch(context.adaptSeconds);
      placementChoice->report(regionTimes);
    }
    if (status.isOk() || fault.device == 0 || context.placement.empty())
      return status;
    leaveDevice(fault);
  }
}

Status Session::runOnce(std::span<const BorrowedValue> inputs) {
  DSPARK_ASSIGN_OR_RETURN(Trace * trace, traceFor(inputs));
  DSPARK_RETURN_IF_ERROR(lend(inputs, *trace));
  context.strings.reset();
  if (threadChoice) {
    DSPARK_RETURN_IF_ERROR(runAdapted(*trace));
  } else {
    if (!context.isSerial)
      context.pool.beginRun();
    DSPARK_RETURN_IF_ERROR(trace->run());
  }
  figures.arenaBytes = trace->lastSegment().arenaBytes;
  figures.lowerBound = trace->lastSegment().lowerBound;
  return takeOutputs(*trace);
}

MemoryFigures Session::memory() const {
  MemoryFigures now = figures;
  now.bytesInUse = context.budget.inUse();
  return now;
}

} // namespace dspark
