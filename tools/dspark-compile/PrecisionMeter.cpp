#include "tools/dspark-compile/PrecisionMeter.h"
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>

namespace dspark {
namespace {

constexpr int kRepeats = 4; // of each measured call; the fastest counts

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

// The call of a region's step with other weights and another place for the result.
struct VariantCall {
  VariantCall(const KernelCall &call, const PrecisionVariant *variant, float *result)
      : in(call.in.begin(), call.in.end()), out(call.out[0]) {
    out.data = result;
    for (const Attr &attr : call.attrs.all())
      if (!variant || (attr.name != "packed" && attr.name != "arithmetic"))
        attrs.push_back(attr);
    if (variant) {
      attrs.push_back({"packed", {}, {}, variant->layout});
      attrs.push_back({"arithmetic", {}, {}, variant->arithmetic});
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
  byByteStep.erase(nullptr);
  byQuantizeStep.erase(nullptr);
}

void PrecisionMeter::setMode(Mode newMode, std::vector<int> newChoices) {
  mode = newMode;
  choices = std::move(newChoices);
}

double PrecisionMeter::timed(const Kernel &kernel, const KernelCall &call, int repeats) {
  KernelWork work;
  kernel.prepare(call, work);
  std::byte *own = aligned(scratch, work.scratchPerThread), *common = aligned(shared, work.scratchShared);
  double least = INFINITY;
  for (int i = 0; i < repeats; ++i) {
    auto start = std::chrono::steady_clock::now();
    for (int phase = 0; phase < work.phases; ++phase)
      kernel.run(call, work, {0, work.tiles[phase], phase, 0, own, common});
    least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return least;
}

double PrecisionMeter::predicted(const Kernel &kernel, const KernelCall &call) const {
  KernelWork work;
  kernel.prepare(call, work);
  return model.predict(costFeatures(kernel, call, work, 2), footprint, 1);
}

void PrecisionMeter::measure(PrecisionRegion &region, const Kernel &kernel, const KernelCall &call) {
  size_t elements = size_t(call.out[0].elements());
  int64_t rows = rowsOf(call);
  auto take = [&](const Kernel *row, const KernelCall &made) {
    return row ? RegionCall{rows, timed(*row, made, kRepeats), predicted(*row, made)}
               : RegionCall{rows, INFINITY, INFINITY};
  };
  results.resize(region.variants.size() + 1);
  results.back().resize(elements);
  VariantCall plain(call, nullptr, results.back().data());
  region.calls.push_back(take(&kernel, plain.made));
  region.kernel = kernel.name;
  for (size_t v = 0; v < region.variants.size(); ++v) {
    PrecisionVariant &variant = region.variants[v];
    if (variant.isStatic())
      continue;
    results[v].resize(elements);
    VariantCall other(call, &variant, results[v].data());
    variant.calls.push_back(take(selectKernel(region.step->opName, other.made, activeIsa()), other.made));
  }
}

// Steps that the plan runs anyway: measured where they write.
void PrecisionMeter::measureBytes(const StepInfo &step, const Kernel &kernel, const KernelCall &call) {
  if (auto it = byByteStep.find(&step); it != byByteStep.end())
    for (PrecisionVariant &variant : regions[it->second].variants)
      if (variant.isStatic()) {
        variant.seconds += timed(kernel, call, kRepeats);
        variant.predicted += predicted(kernel, call);
      }
  if (auto it = byQuantizeStep.find(&step); it != byQuantizeStep.end())
    regions[it->second].quantizeSeconds += timed(kernel, call, kRepeats);
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
    timed(*row, other.made, 1);
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
