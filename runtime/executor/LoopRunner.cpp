#include "runtime/executor/LoopRunner.h"
#include "runtime/executor/Contents.h"
#include <algorithm>
#include <cstring>

namespace dspark {
namespace {

constexpr size_t kMaxBodies = 16; // traces kept, one per shape of the carried values

std::string dimsText(const std::vector<int64_t> &dims) {
  std::string out = "[";
  for (size_t i = 0; i < dims.size(); ++i)
    out += (i ? ", " : "") + std::to_string(dims[i]);
  return out + "]";
}

uint64_t product(const std::vector<int64_t> &dims, size_t begin, size_t end) {
  uint64_t n = 1;
  for (size_t i = begin; i < end; ++i)
    n *= uint64_t(dims[i]);
  return n;
}

uint64_t bytesOf(DType type, const std::vector<int64_t> &dims) {
  return uint64_t(dtypeBytes(type, int64_t(product(dims, 0, dims.size()))));
}

int64_t entry(std::span<const int64_t> list, size_t i) { return i < list.size() ? list[i] : 0; }

} // namespace

LoopRunner::LoopRunner(Context &context, const StepInfo &step, const TraceState &outer, int depth)
    : context(context), step(step), body(step.blocks[0]), depth(depth), symbols(outer.symbols),
      expressions(outer.expressions) {
  Attrs attrs(step.attrs);
  carriedCount = size_t(attrs.i("num_carried", 0));
  scanInputCount = size_t(attrs.i("num_scan_inputs", 0));
  hasCondition = attrs.i("has_cond", step.inputs[1] >= 0) != 0;
  for (size_t i = 0; i < carriedCount; ++i)
    carried.emplace_back(context.budget);
  for (size_t i = 0; i < scanInputCount; ++i) {
    ScanInput &input = scanInputs.emplace_back(context.budget);
    input.axis = entry(attrs.ints("scan_input_axes"), i);
    input.isReversed = entry(attrs.ints("scan_input_directions"), i) != 0;
  }
  for (size_t i = 0; i < step.outputs.size() - carriedCount; ++i) {
    ScanOutput &output = scanOutputs.emplace_back(context.budget);
    output.axis = entry(attrs.ints("scan_output_axes"), i);
    output.isReversed = entry(attrs.ints("scan_output_directions"), i) != 0;
  }
  results.resize(step.outputs.size());
}

LoopRunner::~LoopRunner() = default;

// Only an error costs the text.
Status LoopRunner::here(Status status) const { return status.isOk() ? status : status.in(step.where()); }

Status LoopRunner::prepareScanInputs() {
  for (size_t i = 0; i < scanInputCount; ++i) {
    ScanInput &input = scanInputs[i];
    const PlacedTensor &tensor = operands[2 + carriedCount + i];
    int axis = normalizeAxis(input.axis, int(tensor.dims.size()));
    if (axis < 0)
      return invalidArgument(step.where() + ": scan input " + std::to_string(i) + " is " + tensor.info.str() +
                             ", expected to have axis " + std::to_string(input.axis));
    if (dtypeBits(tensor.info.type) % 8 != 0)
      return Status(Code::Unsupported, step.where() + ": scan input " + std::to_string(i) + " is " +
                                           tensor.info.str() + ", expected elements of whole bytes");
    input.length = tensor.dims[size_t(axis)];
    input.outer = product(tensor.dims, 0, size_t(axis));
    input.sliceRun = product(tensor.dims, size_t(axis) + 1, tensor.dims.size()) *
                     uint64_t(dtypeBits(tensor.info.type) / 8);
    input.sliceDims = tensor.dims;
    input.sliceDims.erase(input.sliceDims.begin() + axis);
    if (input.outer > 1)
      DSPARK_RETURN_IF_ERROR(input.slice.ensure(input.outer * input.sliceRun, "a slice of a scan input"));
  }
  return Status::ok();
}

Status LoopRunner::tripCount(const void *const *slots, int64_t &trips, bool &goOn) const {
  auto number = [&](size_t operand) {
    int64_t value = 0;
    const PlacedTensor &tensor = operands[operand];
    size_t bytes = tensor.info.type == DType::I64 ? 8 : tensor.info.type == DType::I32 ? 4 : 1;
    std::memcpy(&value, tensor.pointer(slots), bytes);
    return bytes == 4 ? int64_t(int32_t(value)) : value;
  };
  for (size_t operand : {size_t(0), size_t(1)})
    if (const TensorInfo &info = operands[operand].info; info.present())
      if (elementCount(info.dims) != 1 ||
          (operand == 0 ? info.type != DType::I64 && info.type != DType::I32 : info.type != DType::Bool))
        return invalidArgument(step.where() + ": the " + (operand == 0 ? "trip count" : "condition") +
                               " is " + info.str() + ", expected one " + (operand == 0 ? "integer" : "bool"));
  trips = operands[0].info.present() ? std::max<int64_t>(number(0), 0) : INT64_MAX;
  goOn = !hasCondition || !operands[1].info.present() || number(1) != 0;
  for (size_t i = 0; i < scanInputCount; ++i) {
    if (i > 0 && scanInputs[i].length != scanInputs[0].length)
      return invalidArgument(step.where() + ": scan input " + std::to_string(i) + " has length " +
                             std::to_string(scanInputs[i].length) + ", expected " +
                             std::to_string(scanInputs[0].length) + " as the first one");
    trips = std::min(trips, scanInputs[i].length);
  }
  return Status::ok();
}

Status LoopRunner::slice(ScanInput &input, const std::byte *base, int64_t trips, const void *&pointer) {
  uint64_t at = uint64_t(input.isReversed ? trips - 1 - iteration : iteration) * input.sliceRun;
  pointer = base + at;
  if (input.outer > 1 && input.sliceRun > 0) {
    for (uint64_t i = 0; i < input.outer; ++i)
      std::memcpy(input.slice.data() + i * input.sliceRun,
                  base + at + i * uint64_t(input.length) * input.sliceRun, input.sliceRun);
    pointer = input.slice.data();
  }
  return Status::ok();
}

namespace {

LiveValue liveForm(const PlacedTensor &placed, const void *const *slots) {
  LiveValue value{
      placed.info.type, placed.dims, placed.isList ? nullptr : placed.pointer(slots), placed.isList, {}};
  for (const PlacedTensor &item : placed.items)
    value.items.push_back(liveForm(item, slots));
  return value;
}

// Contents that are known need no slot.
bool isKnownCapture(const PlacedTensor &tensor) {
  return tensor.slot < 0 && !tensor.data && isKnownInteger(tensor.info);
}

TracedItem captured(const PlacedTensor &placed, int &nextSlot) {
  TracedItem item{placed.info, {}, placed.isList, {}};
  for (const PlacedTensor &inner : placed.items)
    item.items.push_back(captured(inner, nextSlot));
  if (!placed.isList && !isKnownCapture(placed))
    item.storage = {Storage::Kind::Slot, nextSlot++, nullptr};
  return item;
}

} // namespace

TraceState LoopRunner::bodyState() const {
  TraceState state;
  state.symbols = symbols;
  state.expressions = expressions;
  state.frames.push_back({&body});
  auto values = context.program.values();
  auto define = [&](int value, const LiveValue &form) {
    state.values[value] = {inSlots(form, state.slots), values[size_t(value)].uses};
  };
  define(body.args[0], {DType::I64, {}, nullptr, false, {}});
  define(body.args[1], {DType::Bool, {}, nullptr, false, {}});
  for (size_t i = 0; i < carriedCount; ++i)
    define(body.args[2 + i], results[i]);
  for (size_t i = 0; i < scanInputCount; ++i)
    define(body.args[2 + carriedCount + i],
           {operands[2 + carriedCount + i].info.type, scanInputs[i].sliceDims, nullptr, false, {}});
  for (size_t i = 0; i < captures.size(); ++i)
    state.values[body.captures[i].value] = {captured(captures[i], state.slots), body.captures[i].uses};
  return state;
}

StatusOr<Trace *> LoopRunner::bodyFor() {
  key.clear();
  for (size_t i = 0; i < carriedCount; ++i)
    appendShape(results[i], key);
  ++context.clock;
  for (Body &known : bodies)
    if (known.key == key) {
      known.lastUse = context.clock;
      return known.trace.get();
    }
  TraceState state = bodyState();
  std::vector<const void *> pointers(size_t(state.slots), nullptr);
  DSPARK_ASSIGN_OR_RETURN(auto trace,
                          Trace::create(context, std::move(state), depth + 1, std::move(pointers)));
  if (bodies.size() >= kMaxBodies)
    bodies.erase(std::min_element(bodies.begin(), bodies.end(),
                                  [](auto &a, auto &b) { return a.lastUse < b.lastUse; }));
  bodies.push_back({key, std::move(trace), context.clock});
  return bodies.back().trace.get();
}

Status LoopRunner::takeCarried(size_t index, const PlacedTensor &result, const void *const *slots) {
  LiveValue &output = results[index];
  if (result.isList) {
    NextList &list = nextLists.emplace_back();
    list.index = index;
    for (const PlacedTensor &item : result.items)
      DSPARK_RETURN_IF_ERROR(takeItem(item, slots, list));
    list.value = liveForm(result, slots);
    size_t next = 0;
    forTensors(list.value, [&](LiveValue &tensor) {
      if (const auto &owner = list.owners[next++])
        tensor.data = owner->data();
    });
    return Status::ok();
  }
  if (output.type != result.info.type && !output.isList)
    return invalidArgument(step.where() + ": carried value " + std::to_string(index) + " becomes " +
                           result.info.str() + ", expected type " + std::string(dtypeName(output.type)));
  const void *pointer = result.pointer(slots);
  output.dims = result.dims;
  if (pointer == output.data && !output.isList)
    return Status::ok(); // passed through
  Carried &value = carried[index];
  int target = value.active == 0 ? 1 : 0;
  uint64_t bytes = bytesOf(result.info.type, result.dims);
  DSPARK_RETURN_IF_ERROR(here(value.buffers[target].ensure(bytes, "a loop's carried value")));
  if (bytes > 0)
    std::memcpy(value.buffers[target].data(), pointer, bytes);
  value.active = target;
  output.type = result.info.type;
  output.data = value.buffers[target].data();
  output.isList = false;
  output.items.clear();
  return Status::ok();
}

// What an earlier iteration has put into a list stays where it is; the rest is copied out of the body's
// arena.
Status LoopRunner::takeItem(const PlacedTensor &item, const void *const *slots, NextList &list) {
  if (item.isList) {
    for (const PlacedTensor &inner : item.items)
      DSPARK_RETURN_IF_ERROR(takeItem(inner, slots, list));
    return Status::ok();
  }
  if (item.slot >= 0 && size_t(item.slot) < isKept.size() && isKept[size_t(item.slot)]) {
    list.owners.push_back(slotOwners[size_t(item.slot)]);
    return Status::ok();
  }
  auto owner = std::make_shared<Block>(context.budget);
  uint64_t bytes = bytesOf(item.info.type, item.dims);
  DSPARK_RETURN_IF_ERROR(here(owner->ensure(std::max<uint64_t>(bytes, 1), "an item of a loop's list")));
  if (bytes > 0)
    std::memcpy(owner->data(), item.pointer(slots), bytes);
  list.owners.push_back(std::move(owner));
  return Status::ok();
}

// The carried values' pointers, and which of them are tensors of lists.
void LoopRunner::addCarriedSlots(Trace &trace, size_t &next) {
  isKept.assign(next, false);
  slotOwners.assign(next, nullptr);
  for (size_t i = 0; i < carriedCount; ++i) {
    const LiveValue &value = results[i];
    size_t at = 0;
    forTensors(value, [&](const LiveValue &tensor) {
      trace.slots[next++] = tensor.data;
      isKept.push_back(value.isList);
      slotOwners.push_back(value.isList && at < carried[i].owners.size() ? carried[i].owners[at] : nullptr);
      ++at;
    });
  }
}

// A carried value that no iteration has changed still lies where the operand does, whose place in the arena
// may be given to others after the loop.
Status LoopRunner::leaveOperand(size_t index) {
  LiveValue &value = results[index];
  const Arena &arena = context.arena(depth);
  auto isInArena = [&](const void *data) {
    auto at = reinterpret_cast<uintptr_t>(data), begin = reinterpret_cast<uintptr_t>(arena.at(0));
    return at >= begin && at - begin < arena.bytes();
  };
  std::vector<std::shared_ptr<Block>> &owners = carried[index].owners;
  Status status;
  size_t next = 0;
  forTensors(value, [&](LiveValue &tensor) {
    size_t place = next++;
    if (!status.isOk() || !isInArena(tensor.data))
      return;
    uint64_t bytes = bytesOf(tensor.type, tensor.dims);
    Block *block = &carried[index].buffers[0];
    if (value.isList) {
      owners.resize(std::max(owners.size(), place + 1));
      owners[place] = std::make_shared<Block>(context.budget);
      block = owners[place].get();
    }
    status = here(block->ensure(bytes, "a loop's carried value"));
    if (!status.isOk() || bytes == 0)
      return;
    std::memcpy(block->data(), tensor.data, bytes);
    tensor.data = block->data();
  });
  return status;
}

Status LoopRunner::takeSlice(ScanOutput &output, const PlacedTensor &result, const void *pointer,
                             int64_t trip) {
  if (result.isList)
    return invalidArgument(step.where() + ": a scan output is a list, expected a tensor");
  if (trip == 0) {
    output.sliceDims = result.dims;
    output.type = result.info.type;
    output.sliceBytes = bytesOf(output.type, output.sliceDims);
    if (dtypeBits(output.type) % 8 != 0)
      return Status(Code::Unsupported, step.where() + ": a scan output is " + result.info.str() +
                                           ", expected elements of whole bytes");
  } else if (result.dims != output.sliceDims || result.info.type != output.type) {
    return invalidArgument(step.where() + ": a scan output is " + result.info.str() + " in iteration " +
                           std::to_string(trip) + ", expected dims " + dimsText(output.sliceDims) +
                           " as in the first one");
  }
  uint64_t done = uint64_t(trip) * output.sliceBytes;
  DSPARK_RETURN_IF_ERROR(here(output.slices.grow(done + output.sliceBytes, done, "a loop's scan output")));
  if (output.sliceBytes > 0)
    std::memcpy(output.slices.data() + done, pointer, output.sliceBytes);
  return Status::ok();
}

// Slices lie in the order they were made; the result has them along `axis`, perhaps backwards.
Status LoopRunner::stack(ScanOutput &output, int64_t trips, LiveValue &result) {
  int rank = int(output.sliceDims.size()) + 1;
  int axis = normalizeAxis(output.axis, rank);
  if (axis < 0)
    return invalidArgument(step.where() + ": scan output axis is " + std::to_string(output.axis) +
                           ", expected one of a tensor of rank " + std::to_string(rank));
  result.type = output.type;
  result.dims = output.sliceDims;
  result.dims.insert(result.dims.begin() + axis, trips);
  result.data = output.slices.data();
  uint64_t outer = product(output.sliceDims, 0, size_t(axis));
  if ((outer <= 1 && !output.isReversed) || trips == 0 || output.sliceBytes == 0)
    return Status::ok();
  uint64_t run = output.sliceBytes / outer;
  DSPARK_RETURN_IF_ERROR(
      here(output.stacked.ensure(uint64_t(trips) * output.sliceBytes, "a loop's scan output")));
  for (int64_t trip = 0; trip < trips; ++trip) {
    int64_t place = output.isReversed ? trips - 1 - trip : trip;
    for (uint64_t i = 0; i < outer; ++i)
      std::memcpy(output.stacked.data() + (i * uint64_t(trips) + uint64_t(place)) * run,
                  output.slices.data() + uint64_t(trip) * output.sliceBytes + i * run, run);
  }
  result.data = output.stacked.data();
  return Status::ok();
}

// No iteration has told the slices' shapes: tracing the body does, where they do not depend on data; else the
// plan's declaration of the results, unknown dims being 0.
Status LoopRunner::emptySlices() {
  if (scanOutputs.empty())
    return Status::ok();
  auto trace = bodyFor();
  const std::vector<PlacedTensor> *traced = trace.isOk() ? (*trace)->staticResults() : nullptr;
  for (size_t i = 0; i < scanOutputs.size(); ++i) {
    ScanOutput &output = scanOutputs[i];
    output.sliceBytes = 0;
    if (traced) {
      output.sliceDims = (*traced)[1 + carriedCount + i].dims;
      output.type = (*traced)[1 + carriedCount + i].info.type;
      continue;
    }
    int value = step.outputs[carriedCount + i];
    const ValueInfo *declared = value >= 0 ? &context.program.values()[size_t(value)] : nullptr;
    if (declared && (declared->type == DType::Undefined || declared->dims.empty()))
      return Status(Code::Unsupported,
                    step.where() + ": the loop makes no iteration, and the shape of its scan output " +
                        std::to_string(i) + " is not known without one");
    output.sliceDims.clear();
    output.type = declared ? declared->type : DType::F32;
    for (size_t d = 1; declared && d < declared->dims.size(); ++d) {
      Dim dim = expressions[size_t(declared->dims[d])];
      output.sliceDims.push_back(dim.isConst() ? dim.value() : 0);
    }
  }
  return Status::ok();
}

Status LoopRunner::run(const void *const *slots) {
  DSPARK_RETURN_IF_ERROR(prepareScanInputs());
  int64_t trips;
  bool goOn;
  DSPARK_RETURN_IF_ERROR(tripCount(slots, trips, goOn));
  for (size_t i = 0; i < carriedCount; ++i) {
    const PlacedTensor &initial = operands[2 + i];
    if (initial.isList)
      results[i] = liveForm(initial, slots);
    else { // dims keep their memory
      results[i].type = initial.info.type;
      results[i].dims = initial.dims;
      results[i].data = initial.pointer(slots);
      results[i].isList = false;
      results[i].items.clear();
    }
    carried[i].active = -1;
    carried[i].owners.clear();
  }
  nextLists.clear();
  condition = 1;
  for (iteration = 0; iteration < trips && goOn; ++iteration) {
    DSPARK_ASSIGN_OR_RETURN(Trace * trace, bodyFor());
    size_t next = 0;
    trace->slots[next++] = &iteration;
    trace->slots[next++] = &condition;
    addCarriedSlots(*trace, next);
    for (size_t i = 0; i < scanInputCount; ++i) {
      const void *base = operands[2 + carriedCount + i].pointer(slots);
      DSPARK_RETURN_IF_ERROR(slice(scanInputs[i], static_cast<const std::byte *>(base), scanInputs[i].length,
                                   trace->slots[next++]));
    }
    for (const PlacedTensor &capture : captures)
      forTensors(capture, [&](const PlacedTensor &tensor) {
        if (!isKnownCapture(tensor))
          trace->slots[next++] = tensor.pointer(slots);
      });
    DSPARK_RETURN_IF_ERROR(trace->run());
    // The results lie in the body's arena, or are arguments passed through. An argument that is overwritten
    // below may still be another result, so scan outputs and copies into the idle buffers come before
    // anything is given up.
    const std::vector<PlacedTensor> &made = trace->results();
    if (hasCondition) {
      if (made[0].info.type != DType::Bool || elementCount(made[0].info.dims) != 1)
        return invalidArgument(step.where() + ": the body's condition is " + made[0].info.str() +
                               ", expected one bool");
      goOn = *static_cast<const uint8_t *>(made[0].pointer(trace->slots.data())) != 0;
    }
    for (size_t i = 0; i < scanOutputs.size(); ++i) {
      const PlacedTensor &result = made[1 + carriedCount + i];
      DSPARK_RETURN_IF_ERROR(
          takeSlice(scanOutputs[i], result, result.pointer(trace->slots.data()), iteration));
    }
    for (size_t i = 0; i < carriedCount; ++i)
      DSPARK_RETURN_IF_ERROR(takeCarried(i, made[1 + i], trace->slots.data()));
    for (NextList &list : nextLists) {
      results[list.index] = std::move(list.value);
      carried[list.index].owners = std::move(list.owners);
    }
    nextLists.clear();
  }
  if (iteration == 0)
    DSPARK_RETURN_IF_ERROR(emptySlices());
  for (size_t i = 0; i < carriedCount; ++i)
    DSPARK_RETURN_IF_ERROR(leaveOperand(i));
  for (size_t i = 0; i < scanOutputs.size(); ++i)
    DSPARK_RETURN_IF_ERROR(stack(scanOutputs[i], iteration, results[carriedCount + i]));
  return Status::ok();
}

} // namespace dspark
