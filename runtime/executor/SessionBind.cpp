// What a session would run for given shapes, for people and for what decides.
#include "runtime/executor/Session.h"
#include <utility>

namespace dspark {

StatusOr<BoundPlan> Session::bind(std::span<const BorrowedTensor> inputs) { return bind(asValues(inputs)); }

namespace {

// Bit k: operand k is a constant of the plan. Calls that make parts of a step on lists have none.
uint64_t constantOperands(const Program &program, const Record &record) {
  uint64_t mask = 0;
  if (record.step->kind == fb::StepKind::Kernel)
    for (size_t k = 0; k < record.step->inputs.size() && k < 64; ++k)
      if (int value = record.step->inputs[k];
          value >= 0 && program.values()[size_t(value)].kind == fb::ValueKind::Constant)
        mask |= uint64_t(1) << k;
  return mask;
}

double bytesOf(const BorrowedValue &value) {
  double bytes = 0;
  for (size_t i = 0; i < value.count; ++i)
    bytes += bytesOf(value.items[i]);
  int64_t elements = 1;
  for (int d = 0; d < value.tensor.rank; ++d)
    elements *= value.tensor.dims[d];
  return value.isList ? bytes : double(dtypeBytes(value.tensor.type, elements));
}

} // namespace

StatusOr<BoundPlan> Session::bind(std::span<const BorrowedValue> inputs) {
  StatusOr<Trace *> traced = traceFor(inputs);
  context.devices.takeFault(); // the caller sees the error
  if (!traced.isOk())
    return traced.status();
  const Segment &segment = (*traced)->firstSegment();
  BoundPlan bound;
  bound.arenaBytes = segment.arenaBytes;
  bound.lowerBound = segment.lowerBound;
  bound.endsAt = segment.endStep;
  std::vector<char> isCounted(plan->values().size());
  bound.valueBytes.resize(plan->values().size());
  for (size_t i = 0; i < inputs.size(); ++i)
    bound.valueBytes[size_t(plan->inputs()[i])] = bytesOf(inputs[i]);
  for (const DeviceCommand &command : segment.commands)
    if (command.kind == DeviceCommand::Kind::CopyIn)
      bound.transfers.push_back({command.value, 0, command.device, command.bytes});
    else if (command.kind == DeviceCommand::Kind::CopyOut)
      bound.transfers.push_back({command.value, command.device, 0, command.bytes});
  for (const auto &block : segment.blocks)
    bound.deviceBytes.push_back(block ? block->bytes() : 0);
  for (const Record &record : segment.records) {
    if (!record.kernel)
      continue;
    uint64_t constants = constantOperands(*plan, record);
    BoundStep step{record.step,
                   record.kernel,
                   {},
                   {},
                   record.work.flops,
                   record.work.bytes,
                   record.work.tiles[0],
                   costFeatures(*record.kernel, record.call, record.work, constants),
                   record.command < 0 ? 0 : segment.commands[size_t(record.command)].device,
                   &record,
                   constants};
    for (int value : record.step->inputs)
      if (value >= 0 && !std::exchange(isCounted[size_t(value)], 1))
        bound.constantBytes += double(plan->values()[size_t(value)].bytes.size());
    for (size_t k = 0; k < record.call.out.size(); ++k) {
      const TensorView &view = record.call.out[k];
      TensorInfo info;
      if (view.present()) {
        info = TensorInfo::make(view.type, std::vector<Dim>(view.dims, view.dims + view.rank));
        if (record.step->kind == fb::StepKind::Kernel)
          bound.valueBytes[size_t(record.step->outputs[k])] = double(dtypeBytes(view.type, view.elements()));
      }
      step.results.push_back(std::move(info));
      step.offsets.push_back(static_cast<const std::byte *>(view.data) - context.arena(0).at(0));
    }
    bound.steps.push_back(std::move(step));
  }
  return bound;
}

} // namespace dspark
