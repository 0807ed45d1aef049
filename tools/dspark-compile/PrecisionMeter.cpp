#include "tools/dspark-compile/PrecisionMeter.h"
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <deque>
#include <emmintrin.h>
#include <memory>

namespace dspark {
namespace {

// Turns of each measured call, of which the fastest counts; fewer where they take so long that a disturbance
// is a small share.
constexpr int kRepeats = 4, kLeastRepeats = 2;
constexpr double kLongSeconds = 0.02; // of all forms
constexpr size_t kLine = 64;          // bytes of a cache line

std::byte *aligned(std::vector<std::byte> &block, size_t bytes) {
  if (block.size() < bytes + 128)
    block.resize(bytes + 128);
  void *start = block.data();
  size_t space = block.size();
  return static_cast<std::byte *>(std::align(64, bytes + 1, start, space));
}

int64_t rowsOf(const KernelCall &call) {
  const TensorView &y = call.out[0];
  return y.rank > 0 ? y.elements(0, y.rank - 1) : 1;
}

void evict(std::span<const std::byte> bytes) {
  for (size_t i = 0; i < bytes.size(); i += kLine)
    _mm_clflush(bytes.data() + i);
}

std::span<const std::byte> bytesOf(const TensorView &view) {
  if (!view.present())
    return {};
  return {view.as<const std::byte>(), size_t(dtypeBytes(view.type, view.elements()))};
}

// What is read from the plan, not from other steps: nothing of attention.
std::span<const std::byte> weightsOf(const PrecisionVariant *variant, const KernelCall &call,
                                     bool hasWeights) {
  if (!hasWeights)
    return {};
  return variant ? std::span<const std::byte>(*variant->weights) : bytesOf(call.in[1]);
}

// The call of a region's step with other weights and another place for the result.
struct VariantCall {
  VariantCall(const KernelCall &call, const PrecisionVariant *variant, float *result)
      : in(call.in.begin(), call.in.end()), out(call.out[0]) {
    out.data = result;
    for (const Attr &attr : call.attrs.all())
      if (!variant || (attr.name != "packed" && attr.name != "arithmetic"))
        attrs.push_back(attr);
    if (variant)
      attrs.push_back({"arithmetic", {}, {}, variant->arithmetic});
    if (variant && variant->isPacked()) {
      attrs.push_back({"packed", {}, {}, variant->layout});
      in[1].data = const_cast<std::byte *>(variant->weights->data());
    }
    made.in = in;
    made.out = {&out, 1};
    made.attrs = Attrs(attrs);
  }
  std::vector<TensorView> in;
  TensorView out;
  std::vector<Attr> attrs;
  KernelCall made;
};

} // namespace

PrecisionMeter::PrecisionMeter(std::vector<PrecisionRegion> &regions, const CostModel &model)
    : model(model), regions(regions) {
  for (size_t r = 0; r < regions.size(); ++r) {
    byStep[regions[r].step] = r;
    byByteStep[regions[r].byteStep] = r;
    byQuantizeStep[regions[r].quantizeStep] = r;
    footprint += double(regions[r].k) * double(regions[r].n) * 4;
  }
  lastCache = model.levels.size() > 1 ? model.levels[model.levels.size() - 2].bytes : INFINITY;
  byByteStep.erase(nullptr);
  byQuantizeStep.erase(nullptr);
}

void PrecisionMeter::setMode(Mode newMode, std::vector<int> newChoices) {
  mode = newMode;
  choices = std::move(newChoices);
}

double PrecisionMeter::timed(const Kernel &kernel, const KernelCall &call) {
  KernelWork work;
  kernel.prepare(call, work);
  std::byte *own = aligned(scratch, work.scratchPerThread), *common = aligned(shared, work.scratchShared);
  auto start = std::chrono::steady_clock::now();
  for (int phase = 0; phase < work.phases; ++phase)
    kernel.run(call, work, {0, work.tiles[phase], phase, 0, own, common});
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// By turns, so that one disturbance meets all, and so that no form finds its weights where its last run left
// them: in a pass every weight is read once.
void PrecisionMeter::takeTurns(const PrecisionRegion &region, std::span<Turn> turns) {
  double spent = 0;
  for (int i = 0; i < kRepeats && (i < kLeastRepeats || spent < kLongSeconds); ++i)
    for (Turn &turn : turns) {
      if (!turn.kernel)
        continue;
      if (passBytes(region, turn.weights.size()) > lastCache)
        evict(turn.weights);
      double seconds = timed(*turn.kernel, turn.call);
      turn.least = std::min(turn.least, seconds);
      spent += seconds;
    }
}

// Bytes of all regions' weights, if all had as many per weight as this region with `bytes` has.
double PrecisionMeter::passBytes(const PrecisionRegion &region, size_t bytes) const {
  return footprint * double(bytes) / std::max(1.0, double(region.k) * double(region.n) * 4);
}

double PrecisionMeter::predicted(const PrecisionRegion &region, const Turn &turn) const {
  if (!turn.kernel)
    return INFINITY;
  KernelWork work;
  turn.kernel->prepare(turn.call, work);
  return model.predict(costFeatures(*turn.kernel, turn.call, work, turn.constants),
                       passBytes(region, turn.weights.size()), 1);
}

void PrecisionMeter::measure(PrecisionRegion &region, const Kernel &kernel, const KernelCall &call) {
  size_t elements = size_t(call.out[0].elements()), variants = region.variants.size();
  std::deque<VariantCall> calls;
  std::vector<Turn> turns;
  std::vector<std::vector<RegionCall> *> times;
  results.resize(variants + 1); // the last one of f32
  for (size_t v = 0; v <= variants; ++v) {
    PrecisionVariant *variant = v < variants ? &region.variants[v] : nullptr;
    if (variant && variant->isStatic())
      continue;
    results[v].resize(elements);
    const KernelCall &made = calls.emplace_back(call, variant, results[v].data()).made;
    turns.push_back({variant ? selectKernel(region.step->opName, made, activeIsa()) : &kernel, made,
                     weightsOf(variant, call, region.n > 0), region.n > 0 ? 1u << 1 : 0});
    times.push_back(variant ? &variant->calls : &region.calls);
  }
  takeTurns(region, turns);
  for (size_t i = 0; i < turns.size(); ++i)
    times[i]->push_back({rowsOf(call), turns[i].least, predicted(region, turns[i])});
  region.kernel = kernel.name;
}

// Steps that the plan runs anyway: measured where they write.
void PrecisionMeter::measureBytes(const StepInfo &step, const Kernel &kernel, const KernelCall &call) {
  if (auto it = byByteStep.find(&step); it != byByteStep.end()) {
    constexpr size_t kWeights = 3; // operand of qlinear_matmul and qlinear_conv
    Turn turn{&kernel, call, bytesOf(call.input(kWeights)), 1 << kWeights};
    takeTurns(regions[it->second], {&turn, 1});
    for (PrecisionVariant &variant : regions[it->second].variants)
      if (variant.isStatic()) {
        variant.seconds += turn.least;
        variant.predicted += predicted(regions[it->second], turn);
      }
  }
  if (auto it = byQuantizeStep.find(&step); it != byQuantizeStep.end()) {
    Turn turn{&kernel, call, {}, 0};
    takeTurns(regions[it->second], {&turn, 1});
    regions[it->second].quantizeSeconds += turn.least;
  }
}

void PrecisionMeter::before(const StepInfo &step, const Kernel &kernel, const KernelCall &call) {
  if (call.out.empty() || call.out[0].elements() == 0)
    return;
  auto found = byStep.find(&step);
  if (mode == Mode::Measure && found == byStep.end())
    return measureBytes(step, kernel, call);
  if (found == byStep.end())
    return;
  PrecisionRegion &region = regions[found->second];
  if (mode == Mode::Measure)
    return measure(region, kernel, call);
  const PrecisionVariant *variant = chosen(found->second, call);
  if (!variant)
    return;
  results.resize(1);
  results[0].resize(size_t(call.out[0].elements()));
  VariantCall other(call, variant, results[0].data());
  if (const Kernel *row = selectKernel(step.opName, other.made, activeIsa()))
    timed(*row, other.made);
}

const PrecisionVariant *PrecisionMeter::chosen(size_t region, const KernelCall &call) const {
  int choice = choices.empty() ? -1 : choices[region];
  const PrecisionVariant *variant = choice < 0 ? nullptr : &regions[region].variants[size_t(choice)];
  return variant && !variant->isStatic() && variant->isFor(rowsOf(call)) ? variant : nullptr;
}

void PrecisionMeter::after(const StepInfo &step, const Kernel &, const KernelCall &call) {
  auto found = byStep.find(&step);
  if (found == byStep.end() || call.out[0].elements() == 0)
    return;
  PrecisionRegion &region = regions[found->second];
  auto *result = call.out[0].as<float>();
  size_t elements = size_t(call.out[0].elements());
  if (mode == Mode::Simulate) {
    if (chosen(found->second, call))
      std::memcpy(result, results[0].data(), elements * sizeof(float));
    return;
  }
  for (size_t i = 0; i < elements; ++i)
    region.signal += double(result[i]) * double(result[i]);
  for (size_t v = 0; v < region.variants.size(); ++v)
    for (size_t i = 0; !region.variants[v].isStatic() && i < elements; ++i) {
      double off = double(results[v][i]) - double(result[i]);
      region.variants[v].calls.back().noise += off * off;
    }
}

} // namespace dspark
