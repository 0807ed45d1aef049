#include "runtime/executor/Placement.h"
#include <algorithm>
#include <cmath>

namespace dspark {
namespace {

int deviceOf(const Placement &placement, size_t step) { return placement.empty() ? 0 : placement[step]; }

} // namespace

bool isView(const StepInfo &step) {
  return step.kind == fb::StepKind::Kernel && step.op->isView && step.outputs.size() == 1 &&
         step.outputs[0] >= 0 && !step.inputs.empty() && step.inputs[0] >= 0;
}

Placement placementOf(const Program &program, std::span<const int> variants) {
  Placement placement(program.body().steps.size());
  for (size_t r = 0; r < variants.size(); ++r) {
    const RegionInfo &region = program.regions()[r];
    for (int step : region.steps)
      placement[size_t(step)] = uint8_t(region.variants[size_t(variants[r])].device);
  }
  bool isCpuOnly =
      std::all_of(placement.begin(), placement.end(), [](uint8_t device) { return device == 0; });
  return isCpuOnly ? Placement() : placement;
}

Placement chosenPlacement(const Program &program, int sizes) {
  std::vector<int> variants;
  for (const RegionInfo &region : program.regions())
    variants.push_back(sizes < 0 || region.choices.empty() ? region.chosen : region.choices[size_t(sizes)]);
  return placementOf(program, variants);
}

int nearestSizes(const Program &program, std::span<const Dim> symbols) {
  int nearest = -1;
  double least = INFINITY;
  for (size_t i = 0; i < program.sizes().size(); ++i) {
    double apart = 0;
    for (auto [symbol, size] : program.sizes()[i])
      if (const Dim &found = symbols[size_t(symbol)]; found.isConst())
        apart += std::fabs(std::log2(double(std::max<int64_t>(found.value(), 1))) -
                           std::log2(double(std::max<int64_t>(size, 1))));
    if (apart < least) {
      least = apart;
      nearest = int(i);
    }
  }
  return nearest;
}

std::string reasonAgainstDevices(const Program &program) {
  for (int value : program.inputs())
    if (program.values()[size_t(value)].isState)
      return "input '" + std::string(program.values()[size_t(value)].name) +
             "' is a state, which a run that fails on a device would leave half updated";
  return "";
}

std::vector<uint32_t> devicesThatNeed(const Program &program, const Placement &placement) {
  std::vector<uint32_t> needs(program.values().size());
  for (const OutputInfo &output : program.outputs())
    needs[size_t(output.value)] |= 1;
  const std::vector<StepInfo> &steps = program.body().steps;
  for (size_t i = steps.size(); i-- > 0;) {
    const StepInfo &step = steps[i];
    if (isView(step)) {
      needs[size_t(step.inputs[0])] |= needs[size_t(step.outputs[0])];
      continue;
    }
    uint32_t bit = uint32_t(1) << deviceOf(placement, i);
    forUses(step, [&](int value) { needs[size_t(value)] |= bit; });
  }
  return needs;
}

std::vector<Crossing> crossingsOf(const Program &program, const Placement &placement) {
  std::vector<Crossing> crossings;
  if (placement.empty())
    return crossings;
  const std::vector<StepInfo> &steps = program.body().steps;
  std::vector<uint32_t> needs = devicesThatNeed(program, placement);
  // The first use of a view there is one of its source, which is found through its own source.
  std::vector<int> source(program.values().size());
  for (size_t v = 0; v < source.size(); ++v)
    source[v] = int(v);
  std::vector<size_t> firstOf(program.values().size()); // a value's crossings follow each other
  auto add = [&](int value, int from, int step) {
    uint32_t others = needs[size_t(value)] & ~(uint32_t(1) << from);
    firstOf[size_t(value)] = crossings.size();
    if (others == 0)
      return;
    if (from != 0)
      crossings.push_back({value, from, 0, step, int(steps.size())});
    for (int to = 1; to < 32; ++to)
      if (others >> to & 1)
        crossings.push_back({value, 0, to, step, int(steps.size())});
  };
  for (int value : program.inputs())
    add(value, 0, -1);
  for (size_t i = 0; i < steps.size(); ++i)
    for (int value : steps[i].outputs) {
      if (value < 0)
        continue;
      if (isView(steps[i]))
        source[size_t(value)] = source[size_t(steps[i].inputs[0])];
      else
        add(value, deviceOf(placement, i), int(i));
    }
  for (size_t i = steps.size(); i-- > 0;)
    if (int device = deviceOf(placement, i); !isView(steps[i]))
      forUses(steps[i], [&](int used) {
        int value = source[size_t(used)];
        for (size_t c = firstOf[size_t(value)]; c < crossings.size() && crossings[c].value == value; ++c)
          if (crossings[c].to == device || (crossings[c].to == 0 && crossings[c].from != device))
            crossings[c].firstUse = int(i);
      });
  return crossings;
}

} // namespace dspark
