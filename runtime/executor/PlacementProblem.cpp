#include "runtime/executor/PlacementProblem.h"
#include "runtime/executor/Session.h"
#include <algorithm>
#include <map>

namespace dspark {
namespace {

// Flows by producing unit. Views pass on what they are views of.
std::vector<AssignedFlow> flowsOf(const Program &program, const BoundPlan &bound,
                                  const std::vector<int> &unitOfStep) {
  std::vector<int> source(program.values().size()), producer(source.size(), 0);
  for (size_t v = 0; v < source.size(); ++v)
    source[v] = int(v);
  std::map<int, AssignedFlow> flows; // by value
  auto use = [&](int value, int unit) {
    if (value < 0 || program.values()[size_t(value)].kind == fb::ValueKind::Constant)
      return;
    value = source[size_t(value)];
    if (producer[size_t(value)] == unit)
      return;
    AssignedFlow &flow = flows[value];
    flow.producer = producer[size_t(value)];
    flow.bytes = bound.valueBytes[size_t(value)];
    if (std::find(flow.consumers.begin(), flow.consumers.end(), unit) == flow.consumers.end())
      flow.consumers.push_back(unit);
  };
  const std::vector<StepInfo> &steps = program.body().steps;
  for (size_t i = 0; i < steps.size(); ++i) {
    const StepInfo &step = steps[i];
    if (isView(step)) {
      source[size_t(step.outputs[0])] = source[size_t(step.inputs[0])];
      continue;
    }
    forUses(step, [&](int value) { use(value, unitOfStep[i]); });
    for (int value : step.outputs)
      if (value >= 0)
        producer[size_t(value)] = unitOfStep[i];
  }
  for (const OutputInfo &output : program.outputs())
    use(output.value, 0);
  std::vector<AssignedFlow> list;
  for (auto &[value, flow] : flows)
    list.push_back(std::move(flow));
  return list;
}

} // namespace

AssignmentProblem placementProblem(const Program &program, const SessionDevices &devices,
                                   const BoundPlan &bound, const std::vector<int> &unitOfStep, int units) {
  AssignmentProblem problem;
  problem.overlaps = true;
  problem.regions.resize(size_t(units) + 1);
  problem.regions[0].variants = {{0, 0, 0, 0}};
  problem.flows = flowsOf(program, bound, unitOfStep);
  problem.devices = int(program.devices().size());
  size_t count = program.devices().size();
  std::vector<TransferCost> in(count), out(count);
  problem.deviceBytes.assign(count, kUnlimitedBytes);
  for (size_t d = 1; d < count; ++d) {
    Device *device = devices.device(int(d));
    StatusOr<dspark_device_facts> facts = device ? device->facts() : Status(Code::NotFound, "");
    problem.deviceBytes[d] = facts.isOk() ? double(facts->memory) : 0;
    if (!facts.isOk())
      continue;
    in[d] = {facts->copy_latency, 1 / facts->copy_in_second};
    out[d] = {facts->copy_latency, 1 / facts->copy_out_second};
  }
  for (size_t from = 0; from < count; ++from)
    for (size_t to = 0; to < count; ++to)
      problem.transfers.push_back(
          from == to ? TransferCost{}
                     : TransferCost{out[from].latency + in[to].latency, out[from].perByte + in[to].perByte});
  return problem;
}

int bodyIndex(const Program &program, const StepInfo &step) {
  const std::vector<StepInfo> &steps = program.body().steps;
  bool isInside = &step >= steps.data() && &step < steps.data() + steps.size();
  return isInside ? int(&step - steps.data()) : -1;
}

} // namespace dspark
