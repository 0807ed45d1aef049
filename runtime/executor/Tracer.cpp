#include "runtime/executor/Tracer.h"
#include "runtime/executor/Contents.h"
#include "runtime/executor/LoopRunner.h"
#include "runtime/executor/PackedCheck.h"
#include "runtime/executor/Values.h"
#include <utility>

namespace dspark {

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
  isKnownNow = isConstant(value);
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

} // namespace dspark
