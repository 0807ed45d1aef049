#include "runtime/executor/Tracer.h"
#include "runtime/executor/Contents.h"
#include "runtime/executor/LoopRunner.h"
#include "runtime/executor/PackedCheck.h"
#include "runtime/executor/Values.h"
#include "runtime/format/ArenaPlan.h"
#include <algorithm>
#include <utility>

namespace dspark {
namespace {

// Steps below this many seconds run on the calling thread: waking or even just telling the others costs
// microseconds.
constexpr double kSmallSeconds = 5e-6;
constexpr double kFlopsPerSecond = 2e10, kBytesPerSecond = 1e10; // of one core, to within a small factor
constexpr uint32_t kMaxTiles = 1u << 30;

bool isConstant(const Program &program, int value) {
  return program.values()[size_t(value)].kind == fb::ValueKind::Constant;
}

int64_t bytesOf(const TensorInfo &info) { return dtypeBytes(info.type, elementCount(info.dims)); }

// The row of that name if it can do the call, else `otherwise`.
const Kernel *preferredKernel(std::string_view name, std::string_view op, const KernelCall &call, Isa cap,
                              const Kernel *otherwise) {
  for (const Kernel &row : allKernels())
    if (name == row.name && op == row.op && row.isa <= cap && (!row.accepts || row.accepts(call)))
      return &row;
  return otherwise;
}

std::string typesOf(std::span<const TensorView> views) {
  std::string out;
  for (const TensorView &view : views) {
    TensorInfo info;
    if (view.present())
      info = TensorInfo::make(view.type, std::vector<Dim>(view.dims, view.dims + view.rank));
    out += (out.empty() ? "" : ", ") + info.str();
  }
  return out;
}

} // namespace

Tracer::Tracer(Context &context, TraceState initial, int depth)
    : context(context), state(std::move(initial)), depth(depth),
      segment(std::make_unique<Segment>(context.liveSegments)) {
  // Whatever is alive was placed by an earlier segment.
  for (TracedBuffer &buffer : state.buffers)
    buffer.first = buffer.last = -1;
  if (!context.placement.empty() && depth == 0) {
    needs = devicesThatNeed(context.program, context.placement);
    deviceBuffers.resize(context.devices.count());
  }
}

StatusOr<std::unique_ptr<Segment>> Tracer::trace(Context &context, TraceState state, int depth,
                                                 const std::vector<const void *> &slots) {
  return Tracer(context, std::move(state), depth).run(slots);
}

StatusOr<std::unique_ptr<Segment>> Tracer::resume(Context &context, const Segment &before, int depth,
                                                  const std::vector<const void *> &slots) {
  Tracer tracer(context, before.after, depth);
  TraceState &state = tracer.state;
  const StepInfo &step = *before.endStep;
  size_t next = 0;
  switch (before.end) {
  case SegmentEnd::Return:
    break;
  case SegmentEnd::Contents:
    setContents(state.values.at(before.observedValue).info, before.key);
    break;
  case SegmentEnd::Dims:
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      const TensorView &view = before.records.back().call.out[i];
      std::vector<Dim> dims(before.key.begin() + int64_t(next),
                            before.key.begin() + int64_t(next) + view.rank);
      next += size_t(view.rank);
      if (step.outputs[i] < 0)
        continue;
      DSPARK_RETURN_IF_ERROR(tracer.bindDims(step, step.outputs[i], TensorInfo::make(view.type, dims)));
      if (auto it = state.values.find(step.outputs[i]); it != state.values.end())
        it->second.info.dims = std::move(dims);
    }
    break;
  case SegmentEnd::Loop:
    for (const LiveValue &output : before.loop->outputs()) {
      int value = step.outputs[next++];
      TracedItem item = inSlots(output, state.slots);
      if (value < 0)
        continue;
      if (!item.isList)
        DSPARK_RETURN_IF_ERROR(tracer.bindDims(step, value, item.info));
      tracer.define(value, std::move(item));
    }
    for (int value : step.inputs)
      tracer.use(value);
    for (const Capture &capture : step.blocks[0].captures)
      tracer.use(capture.value, capture.uses);
    break;
  }
  return tracer.run(slots);
}

StatusOr<std::unique_ptr<Segment>> Tracer::run(const std::vector<const void *> &slots) {
  DSPARK_RETURN_IF_ERROR(sendInputs());
  for (Next next = Next::Step; next == Next::Step;) {
    Frame &frame = state.frames.back();
    if (frame.next < frame.block->steps.size()) {
      DSPARK_ASSIGN_OR_RETURN(next, step(frame.block->steps[frame.next]));
    } else if (state.frames.size() > 1) {
      DSPARK_RETURN_IF_ERROR(leaveBranch());
    } else {
      finishBlock();
      next = Next::End;
    }
  }
  DSPARK_RETURN_IF_ERROR(place());
  DSPARK_RETURN_IF_ERROR(placeOnDevices());
  DSPARK_RETURN_IF_ERROR(finishRecords(slots));
  if (segment->end != SegmentEnd::Return)
    segment->after = std::move(state);
  return std::move(segment);
}

StatusOr<Tracer::Next> Tracer::step(const StepInfo &step) {
  Next next = Next::Step;
  if (step.kind != fb::StepKind::Kernel && step.kind != fb::StepKind::Dims)
    comeHome();
  switch (step.kind) {
  case fb::StepKind::Kernel: {
    DSPARK_ASSIGN_OR_RETURN(next, kernelStep(step));
    break;
  }
  case fb::StepKind::Dims:
    DSPARK_RETURN_IF_ERROR(dimsStep(step));
    break;
  case fb::StepKind::If: {
    return ifStep(step);
  }
  case fb::StepKind::Loop:
    DSPARK_RETURN_IF_ERROR(loopStep(step));
    next = Next::End;
    break;
  case fb::StepKind::List: {
    DSPARK_ASSIGN_OR_RETURN(next, listStep(step));
    break;
  }
  }
  // A step that ended the segment to see contents is traced again with them.
  if (segment->end != SegmentEnd::Contents)
    ++state.frames.back().next;
  return next;
}

// --- values ---

const TracedValue *Tracer::find(int value) const {
  auto it = state.values.find(value);
  return it == state.values.end() ? nullptr : &it->second;
}

TracedItem Tracer::itemOf(int value) const {
  if (const TracedValue *traced = find(value))
    return *traced;
  return {infoOf(value), storageOf(value), false, {}};
}

const TensorInfo &Tracer::infoOf(int value) const {
  static const TensorInfo kAbsent;
  if (value < 0)
    return kAbsent;
  const TracedValue *traced = find(value);
  return traced ? traced->info : context.program.values()[size_t(value)].info;
}

Storage Tracer::storageOf(int value) const {
  if (value < 0)
    return {};
  if (const TracedValue *traced = find(value))
    return traced->storage;
  return {Storage::Kind::Constant, -1, context.program.values()[size_t(value)].bytes.data()};
}

/// Known contents become bytes of the segment.
void Tracer::writeOut(TracedItem &item) {
  forTensors(item, [&](TracedItem &tensor) {
    if (tensor.storage.kind != Storage::Kind::Known || !tensor.info.present())
      return;
    segment->constants.push_back(contentBytes(tensor.info));
    tensor.storage = {Storage::Kind::Constant, -1, segment->constants.back().data()};
  });
}

TracedItem Tracer::writtenOut(int value) {
  if (auto it = state.values.find(value); it != state.values.end())
    writeOut(it->second);
  return itemOf(value);
}

/// A step that works on tensors may be given a list only by a plan that is wrong.
Status Tracer::expectTensor(const StepInfo &step, size_t operand) const {
  const TracedValue *traced = find(step.inputs[operand]);
  if (!traced || !traced->isList)
    return Status::ok();
  return invalidArgument(step.where() + ": operand " + std::to_string(operand) + " is a list of " +
                         std::to_string(traced->items.size()) + " values, expected a tensor");
}

void Tracer::attach(const TracedItem &item, int change) {
  forTensors(item, [&](const TracedItem &tensor) {
    if (tensor.storage.kind != Storage::Kind::Buffer)
      return;
    TracedBuffer &buffer = state.buffers[size_t(tensor.storage.index)];
    buffer.values += change;
    buffer.last = int(segment->records.size()) - 1;
  });
}

void Tracer::define(int value, TracedItem item) {
  int uses = context.program.values()[size_t(value)].uses;
  attach(item, 1);
  if (uses > 0)
    state.values[value] = {std::move(item), uses};
  else
    attach(item, -1);
}

void Tracer::use(int value, int times) {
  if (value < 0 || isConstant(context.program, value))
    return;
  auto it = state.values.find(value);
  if (it == state.values.end() || (it->second.uses -= times) > 0)
    return;
  attach(it->second, -1);
  releaseRemotes(value);
  state.values.erase(it);
}

// `place` stays where it is until the segment is finished.
void Tracer::placeLater(PlacedTensor &place, const TracedItem &item) {
  place.isList = item.isList;
  place.items.resize(item.items.size());
  for (size_t i = 0; i < item.items.size(); ++i)
    placeLater(place.items[i], item.items[i]);
  if (item.isList)
    return;
  place.info = item.info;
  place.dims = numbers(item.info.dims);
  pending.push_back({&place, item.storage});
}

// Dims that the plan declares for a value: symbols that nothing has bound yet get their numbers here, and all
// else must be as declared.
Status Tracer::bindDims(const StepInfo &step, int value, const TensorInfo &info) {
  const ValueInfo &declared = context.program.values()[size_t(value)];
  if (!declared.hasDims)
    return Status::ok();
  bool isBound = declared.dims.size() == info.dims.size();
  for (size_t i = 0; isBound && i < declared.dims.size(); ++i) {
    int symbol = context.program.symbolOf(declared.dims[i]);
    if (symbol >= 0 && state.symbols[size_t(symbol)].isUnknown()) {
      state.symbols[size_t(symbol)] = info.dims[i];
      context.program.evaluate(state.symbols, state.expressions);
    }
    Dim expected = state.expressions[size_t(declared.dims[i])];
    isBound = expected.isUnknown() || expected.provablyEqual(info.dims[i]);
  }
  if (isBound)
    return Status::ok();
  std::string expected;
  for (int dim : declared.dims)
    expected += (expected.empty() ? "" : ", ") + context.program.dimText(dim);
  return Status(Code::Internal, step.where() + ": the result is " + info.str() + ", the plan expects dims [" +
                                    expected + "]");
}

// --- steps ---

// What comes next depends on `value`'s contents. Those of constants are read on the spot; for others the
// segment ends.
Status Tracer::observe(int value, const StepInfo &step, bool &isKnownNow) {
  TensorInfo info = infoOf(value);
  int64_t count = elementCount(info.dims);
  bool isFull =
      info.hasContents && (isFloat(info.type) ? int64_t(info.floats.size()) == count : isKnownInteger(info));
  if (isFull)
    return {Code::Internal, step.where() + ": the shape function asks for contents that it has"};
  if (count > kMaxKnownElements || !hasReadableContents(info.type) ||
      !context.program.values()[size_t(value)].layout.empty())
    return {Code::Unsupported, step.where() + ": the shape depends on the contents of " + info.str() +
                                   ", expected at most " + std::to_string(kMaxKnownElements) +
                                   " elements of a plain type"};
  isKnownNow = isConstant(context.program, value);
  if (isKnownNow) {
    readContents(info, context.program.values()[size_t(value)].bytes.data());
    state.values[value] = {{std::move(info), storageOf(value), false, {}}, 1};
    return Status::ok();
  }
  comeHome();
  segment->end = SegmentEnd::Contents;
  segment->endStep = &step;
  segment->observedValue = value;
  placeLater(segment->observed, writtenOut(value));
  return Status::ok();
}

StatusOr<Tracer::Next> Tracer::kernelStep(const StepInfo &step) {
  if (operands.size() < step.inputs.size())
    operands.resize(step.inputs.size());
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    DSPARK_RETURN_IF_ERROR(expectTensor(step, i));
    operands[i] = infoOf(step.inputs[i]);
  }
  std::span<TensorInfo> inputs = std::span(operands).first(step.inputs.size());
  InferContext inferred;
  inferred.attrs = Attrs(step.attrs);
  for (;;) {
    inferred.in = inputs;
    inferred.out.assign(step.outputs.size(), TensorInfo());
    inferred.needed = -1;
    InferStatus status = inferWith(*step.op, inferred);
    if (status == InferStatus::Ok)
      break;
    if (status == InferStatus::Error)
      return invalidArgument(step.where() + ": " + inferred.error);
    size_t needed = size_t(inferred.needed);
    if (needed >= inputs.size() || step.inputs[needed] < 0)
      return Status(Code::Internal,
                    step.where() + ": the shape function asks for contents of an absent operand");
    bool isKnownNow = false;
    DSPARK_RETURN_IF_ERROR(observe(step.inputs[needed], step, isKnownNow));
    if (!isKnownNow)
      return Next::End;
    inputs[needed] = infoOf(step.inputs[needed]);
  }
  DSPARK_RETURN_IF_ERROR(checkResults(step, inferred));
  DSPARK_RETURN_IF_ERROR(checkPackedOperands(context.program, step, inputs));
  DSPARK_RETURN_IF_ERROR(checkStates(step, inputs, inferred));
  if (!inferred.dimsFromKernel)
    for (size_t i = 0; i < step.outputs.size(); ++i)
      if (step.outputs[i] >= 0)
        DSPARK_RETURN_IF_ERROR(bindDims(step, step.outputs[i], inferred.out[i]));
  if (defineWithoutKernel(step, inputs, inferred))
    return Next::Step;
  if (inferred.dimsFromKernel)
    comeHome();
  if (int device = deviceOf(step, inferred); device > 0)
    DSPARK_RETURN_IF_ERROR(launchOn(device, step, inferred));
  else
    DSPARK_RETURN_IF_ERROR(addKernel(step, inferred));
  if (!inferred.dimsFromKernel)
    return Next::Step;
  segment->end = SegmentEnd::Dims;
  segment->endStep = &step;
  return Next::End;
}

// A state is updated where it lies only if the result has its size.
Status Tracer::checkStates(const StepInfo &step, std::span<const TensorInfo> inputs,
                           const InferContext &inferred) const {
  for (size_t k = 0; k < step.inputs.size(); ++k) {
    if (!isState(step.inputs[k]))
      continue;
    size_t result = *step.updated(k); // Program has seen that there is one
    if (inferred.dimsFromKernel || bytesOf(inferred.out[result]) != bytesOf(inputs[k]))
      return corruptFile(step.where() + ": operand " + std::to_string(k) + " is a state of " +
                         inputs[k].str() + ", and result " + std::to_string(result) + " is " +
                         inferred.out[result].str() + ", expected as many bytes");
  }
  return Status::ok();
}

Status Tracer::checkResults(const StepInfo &step, InferContext &inferred) const {
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    TensorInfo &info = inferred.out[i];
    if (step.outputs[i] < 0)
      continue;
    int64_t count = info.hasRank ? elementCount(info.dims) : -1;
    bool fits = count >= 0 && info.rank() <= kMaxRank && dtypeBits(info.type) > 0;
    if (!fits)
      return invalidArgument(step.where() + ": result " + std::to_string(i) + " is " + info.str() +
                             ", expected a type of fixed size, at most " + std::to_string(kMaxRank) +
                             " dims and fewer than 2^63 elements");
    uint64_t limit = context.budget.limit();
    if (uint64_t(count) > limit / uint64_t(dtypeBits(info.type)) * 8)
      return {Code::OutOfMemory, step.where() + ": result " + std::to_string(i) + " is " + info.str() +
                                     ", larger than the memory limit of " + std::to_string(limit) + " bytes"};
    if (int64_t(isFloat(info.type) ? info.floats.size() : info.ints.size()) != count)
      info.hasContents = false;
  }
  return Status::ok();
}

// Known results, views and empty results need no kernel.
bool Tracer::defineWithoutKernel(const StepInfo &step, std::span<const TensorInfo> inputs,
                                 InferContext &inferred) {
  if (inferred.dimsFromKernel)
    return false;
  bool allKnown = true, allEmpty = true;
  for (size_t i = 0; i < step.outputs.size(); ++i)
    if (step.outputs[i] >= 0) {
      allKnown &= isKnownInteger(inferred.out[i]);
      allEmpty &= elementCount(inferred.out[i].dims) == 0;
    }
  bool isView = step.op->isView && step.outputs.size() == 1 && step.outputs[0] >= 0 && !step.inputs.empty() &&
                step.inputs[0] >= 0 && bytesOf(inputs[0]) == bytesOf(inferred.out[0]);
  if (!allKnown && !allEmpty && !isView)
    return false;
  Storage storage; // Known
  if (!allKnown)
    storage = isView ? bytesOfValue(step.inputs[0]) : Storage{Storage::Kind::Constant, -1, nullptr};
  for (size_t i = 0; i < step.outputs.size(); ++i)
    if (step.outputs[i] >= 0)
      define(step.outputs[i], std::move(inferred.out[i]), storage);
  if (!allKnown && isView)
    shareRemotes(step.inputs[0], step.outputs[0]);
  for (int value : step.inputs)
    use(value);
  return true;
}

Status Tracer::dimsStep(const StepInfo &step) {
  const ValueInfo &declared = context.program.values()[size_t(step.outputs[0])];
  int64_t rank = Attrs(step.attrs).i("rank", 1);
  TensorInfo info =
      TensorInfo::make(declared.type == DType::Undefined ? DType::I64 : declared.type,
                       rank == 0 ? std::vector<Dim>() : std::vector<Dim>{Dim(step.dims.size())});
  info.hasContents = true;
  for (int expression : step.dims) {
    Dim dim = state.expressions[size_t(expression)];
    if (!dim.isConst())
      return {Code::CorruptFile, step.where() + ": dim " + context.program.dimText(expression) +
                                     " has a symbol that nothing binds"};
    info.ints.push_back(dim);
  }
  if (!isKnownInteger(info))
    return corruptFile(step.where() + ": the result has type " + std::string(dtypeName(info.type)) +
                       ", expected an integer type");
  define(step.outputs[0], std::move(info), Storage());
  return Status::ok();
}

StatusOr<Tracer::Next> Tracer::ifStep(const StepInfo &step) {
  int value = step.inputs[0];
  TensorInfo condition = infoOf(value);
  if (condition.type != DType::Bool || elementCount(condition.dims) != 1)
    return invalidArgument(step.where() + ": the condition is " + condition.str() + ", expected one bool");
  if (!isKnownInteger(condition)) {
    bool isKnownNow = false;
    DSPARK_RETURN_IF_ERROR(observe(value, step, isKnownNow));
    return isKnownNow ? Next::Step : Next::End;
  }
  bool isTaken = !condition.ints[0].is(0);
  ++state.frames.back().next;
  use(value);
  for (const Capture &capture : step.blocks[isTaken ? 1 : 0].captures)
    use(capture.value, capture.uses);
  state.frames.push_back({&step.blocks[isTaken ? 0 : 1], 0, &step});
  return Next::Step;
}

Status Tracer::leaveBranch() {
  Frame frame = state.frames.back();
  state.frames.pop_back();
  const StepInfo &step = *frame.owner;
  for (size_t i = 0; i < step.outputs.size(); ++i)
    if (step.outputs[i] >= 0) {
      TracedItem item = itemOf(frame.block->results[i]);
      if (!item.isList)
        DSPARK_RETURN_IF_ERROR(bindDims(step, step.outputs[i], item.info));
      define(step.outputs[i], std::move(item));
    }
  for (int value : frame.block->results)
    use(value);
  return Status::ok();
}

void Tracer::finishBlock() {
  comeHome();
  std::vector<int> values;
  if (state.frames[0].block == &context.program.body())
    for (const OutputInfo &output : context.program.outputs())
      values.push_back(output.value);
  else
    values.assign(state.frames[0].block->results.begin(), state.frames[0].block->results.end());
  segment->results.resize(values.size());
  for (size_t i = 0; i < values.size(); ++i)
    placeLater(segment->results[i], writtenOut(values[i]));
}

Status Tracer::loopStep(const StepInfo &step) {
  segment->end = SegmentEnd::Loop;
  segment->endStep = &step;
  segment->loop = std::make_unique<LoopRunner>(context, step, state, depth);
  LoopRunner &loop = *segment->loop;
  loop.operands.resize(step.inputs.size());
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    if (!loop.isCarried(i))
      DSPARK_RETURN_IF_ERROR(expectTensor(step, i));
    placeLater(loop.operands[i], writtenOut(step.inputs[i]));
  }
  const std::vector<Capture> &captures = step.blocks[0].captures;
  loop.captures.resize(captures.size());
  for (size_t i = 0; i < captures.size(); ++i)
    placeLater(loop.captures[i], itemOf(captures[i].value));
  return Status::ok();
}

// --- records ---

void Tracer::addView(const TensorInfo &info, const Storage &storage) {
  for (Dim dim : info.dims)
    segment->dims.push_back(dim.value());
  // The dims have no place yet: finishRecords points the view to them.
  segment->views.push_back({nullptr, nullptr, int32_t(info.dims.size()), info.type});
  viewStorage.push_back(storage);
  segment->records.back().hasStrings |= info.type == DType::String;
}

// Where a result may lie: with an operand that dies here and that the operator may overwrite, or with a
// state, which it must; Kind::Known if there is no such operand.
Storage Tracer::inPlaceStorage(const StepInfo &step, size_t result, int64_t bytes) const {
  for (size_t k = 0; k < step.inputs.size(); ++k)
    if (isState(step.inputs[k]) && step.updated(k) == result)
      return find(step.inputs[k])->storage;
  if (result > 0)
    return {};
  for (size_t k = 0; k < step.inputs.size() && k < 32; ++k) {
    const TracedValue *candidate = step.inputs[k] >= 0 ? find(step.inputs[k]) : nullptr;
    if (!(step.op->inPlace >> k & 1) || !candidate || candidate->storage.kind != Storage::Kind::Buffer ||
        bytesOf(candidate->info) != bytes || state.buffers[size_t(candidate->storage.index)].values != 1)
      continue;
    int uses = 0;
    bool everyUseMay = true;
    for (size_t j = 0; j < step.inputs.size(); ++j)
      if (step.inputs[j] == step.inputs[k]) {
        ++uses;
        everyUseMay &= j < 32 && (step.op->inPlace >> j & 1);
      }
    if (uses == candidate->uses && everyUseMay)
      return candidate->storage;
  }
  return {};
}

Storage Tracer::newBuffer(const TensorInfo &info) {
  int now = int(segment->records.size());
  state.buffers.push_back({bytesOf(info), -1, now, now, 0});
  return {Storage::Kind::Buffer, int(state.buffers.size()) - 1, nullptr};
}

// A call of `op` with the step's attributes; views of its operands and results have to follow.
void Tracer::startRecord(const StepInfo &step, std::string_view op, size_t inputs, size_t results) {
  Record &record = segment->records.emplace_back();
  record.step = &step;
  record.op = op;
  record.firstView = uint32_t(segment->views.size());
  record.inputs = uint32_t(inputs);
  record.outputs = uint32_t(results);
}

// The same with them.
void Tracer::addRecord(const StepInfo &step, std::string_view op, std::span<const TracedItem> inputs,
                       std::span<const TracedItem> results) {
  startRecord(step, op, inputs.size(), results.size());
  for (std::span<const TracedItem> side : {inputs, results})
    for (const TracedItem &item : side)
      addView(item.info, item.storage);
}

Status Tracer::addKernel(const StepInfo &step, InferContext &inferred) {
  for (int value : step.inputs)
    needHost(value);
  std::vector<Storage> places(step.outputs.size());
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    if (step.outputs[i] < 0)
      continue;
    if (!inferred.dimsFromKernel)
      places[i] = inPlaceStorage(step, i, bytesOf(inferred.out[i]));
    if (places[i].kind == Storage::Kind::Known)
      places[i] = newBuffer(inferred.out[i]);
  }
  startRecord(step, step.opName, step.inputs.size(), step.outputs.size());
  segment->records.back().region = regionOf(step);
  for (int value : step.inputs) {
    if (auto it = state.values.find(value); it != state.values.end())
      writeOut(it->second);
    addView(infoOf(value), storageOf(value));
  }
  for (size_t i = 0; i < step.outputs.size(); ++i)
    addView(step.outputs[i] < 0 ? TensorInfo() : inferred.out[i], places[i]); // an absent result has no type
  for (size_t i = 0; i < step.outputs.size(); ++i)
    if (step.outputs[i] >= 0)
      define(step.outputs[i], std::move(inferred.out[i]), places[i]);
  if (!inferred.dimsFromKernel)
    for (int value : step.outputs)
      DSPARK_RETURN_IF_ERROR(sendAhead(value));
  for (int value : step.inputs)
    use(value);
  return Status::ok();
}

// --- memory and kernels ---

Status Tracer::place() {
  std::vector<ArenaBuffer> alive;
  std::vector<size_t> indices;
  int end = int(segment->records.size());
  for (size_t i = 0; i < state.buffers.size(); ++i) {
    TracedBuffer &buffer = state.buffers[i];
    if (buffer.values == 0 && buffer.last < 0)
      continue;
    alive.push_back({buffer.bytes, buffer.first, buffer.values > 0 ? end : buffer.last, buffer.offset});
    indices.push_back(i);
  }
  ArenaPlan plan = planArena(alive);
  segment->arenaBytes = plan.bytes;
  segment->lowerBound = plan.lowerBound;
  DSPARK_RETURN_IF_ERROR(context.arena(depth).ensure(uint64_t(plan.bytes)));
  for (size_t i = 0; i < alive.size(); ++i)
    state.buffers[indices[i]].offset = alive[i].offset;
  return Status::ok();
}

const void *Tracer::pointerOf(const Storage &storage) const {
  return storage.kind == Storage::Kind::Buffer
             ? context.arena(depth).at(state.buffers[size_t(storage.index)].offset)
             : storage.data;
}

Status Tracer::finishRecords(const std::vector<const void *> &slots) {
  segment->records.shrink_to_fit(); // sessions keep many segments
  for (auto &[tensor, storage] : pending) {
    tensor->slot = storage.kind == Storage::Kind::Slot ? storage.index : -1;
    tensor->data = pointerOf(storage);
  }
  const int64_t *dims = segment->dims.data();
  for (uint32_t i = 0; i < segment->views.size(); ++i) {
    segment->views[i].dims = std::exchange(dims, dims + segment->views[i].rank);
    const void *data = pointerOf(viewStorage[i]);
    if (viewStorage[i].kind == Storage::Kind::Slot) {
      data = slots[size_t(viewStorage[i].index)];
      segment->patches.push_back({i, viewStorage[i].index});
    }
    segment->views[i].data = const_cast<void *>(data);
  }
  for (Record &record : segment->records) {
    if (record.step)
      DSPARK_RETURN_IF_ERROR(finishRecord(record));
    if (record.step && record.command >= 0)
      DSPARK_RETURN_IF_ERROR(finishLaunch(record));
  }
  return Status::ok();
}

Status Tracer::finishRecord(Record &record) {
  const StepInfo &step = *record.step;
  std::span<const TensorView> views(segment->views);
  KernelCall &call = record.call;
  call.in = views.subspan(record.firstView, record.inputs);
  call.out = views.subspan(record.firstView + record.inputs, record.outputs);
  call.attrs = Attrs(step.attrs);
  if (step.kind == fb::StepKind::Kernel && !step.symbol.empty() && context.nativeCode) {
    DSPARK_ASSIGN_OR_RETURN(call.code, context.program.code(step.symbol, context.cap));
  }
  if (segment->end == SegmentEnd::Dims && &record == &segment->records.back()) {
    size_t total = 0;
    for (const TensorView &view : call.out)
      total += size_t(view.rank);
    segment->kernelDims.assign(total, 0);
    int64_t *next = segment->kernelDims.data();
    for (const TensorView &view : call.out) {
      segment->kernelDimPointers.push_back(next);
      next += view.rank;
    }
    call.outDims = segment->kernelDimPointers.data();
  }
  record.kernel = selectKernel(record.op, call, context.cap);
  if (!step.kernel.empty())
    record.kernel = preferredKernel(step.kernel, record.op, call, context.cap, record.kernel);
  if (!record.kernel)
    return {Code::Unsupported, step.where() + ": no kernel for operands (" + typesOf(call.in) +
                                   ") and results (" + typesOf(call.out) + ") up to ISA level " +
                                   std::string(isaName(context.cap))};
  KernelWork &work = record.work;
  record.kernel->prepare(call, work);
  if (work.phases < 1 || work.phases > kMaxPhases)
    return {Code::Internal, step.where() + ": kernel " + record.kernel->name + " wants " +
                                std::to_string(work.phases) + " phases"};
  bool hasTiles = false;
  for (int phase = 0; phase < work.phases; ++phase) {
    if (work.tiles[phase] > kMaxTiles)
      return {Code::Unsupported, step.where() + ": kernel " + record.kernel->name + " wants " +
                                     std::to_string(work.tiles[phase]) + " tiles, expected at most " +
                                     std::to_string(kMaxTiles)};
    hasTiles |= work.tiles[phase] > 1;
  }
  if (work.bytes == 0)
    for (const TensorView &view : views.subspan(record.firstView, record.inputs + record.outputs))
      work.bytes += view.present() ? double(dtypeBytes(view.type, view.elements())) : 0;
  if (context.timeModel)
    record.predicted = context.timeModel->predict(costFeatures(*record.kernel, call, work, 0), work.bytes,
                                                  context.pool.threads());
  double seconds = std::max(work.flops / kFlopsPerSecond, work.bytes / kBytesPerSecond);
  record.isSmall = !hasTiles || seconds < kSmallSeconds;
  Status room = context.ensureScratch(work.scratchPerThread, work.scratchShared);
  return room.isOk() ? room : room.in(step.where());
}

} // namespace dspark
