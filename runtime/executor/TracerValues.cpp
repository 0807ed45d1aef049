// The values of a trace: what is known of them, where they lie, how often they are still read.
#include "runtime/executor/Contents.h"
#include "runtime/executor/Tracer.h"
#include "runtime/executor/Values.h"
#include <utility>

namespace dspark {

bool Tracer::isConstant(int value) const {
  return context.program.values()[size_t(value)].kind == fb::ValueKind::Constant;
}

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
  if (value < 0 || isConstant(value))
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

} // namespace dspark
