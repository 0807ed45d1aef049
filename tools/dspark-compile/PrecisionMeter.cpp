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
      in[1].data = const_cast<std::byte *>(variant->weights.data());
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

PrecisionMeter::PrecisionMeter(std::vector<PrecisionRegion> &regions, const CostModel &model) : model(model) {
  for (PrecisionRegion &region : regions) {
    byStep[region.step] = &region;
    footprint += double(region.k) * double(region.n) * 4;
  }
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

void PrecisionMeter::measure(PrecisionRegion &region, const Kernel &kernel, const KernelCall &call) {
  size_t elements = size_t(call.out[0].elements());
  results.resize(region.variants.size() + 1);
  auto predict = [&](const Kernel &row, const KernelCall &made) {
    KernelWork work;
    row.prepare(made, work);
    return model.predict(costFeatures(row, made, work, 2), footprint, 1);
  };
  results.back().resize(elements);
  VariantCall plain(call, nullptr, results.back().data());
  region.seconds += timed(kernel, plain.made, kRepeats);
  region.predicted += predict(kernel, plain.made);
  region.kernel = kernel.name;
  for (size_t v = 0; v < region.variants.size(); ++v) {
    PrecisionVariant &variant = region.variants[v];
    results[v].resize(elements);
    VariantCall other(call, &variant, results[v].data());
    const Kernel *row = selectKernel(region.step->opName, other.made, activeIsa());
    variant.seconds += row ? timed(*row, other.made, kRepeats) : INFINITY;
    variant.predicted += row ? predict(*row, other.made) : INFINITY;
  }
}

void PrecisionMeter::before(const StepInfo &step, const Kernel &kernel, const KernelCall &call) {
  auto found = byStep.find(&step);
  if (found == byStep.end() || call.out[0].elements() == 0)
    return;
  PrecisionRegion &region = *found->second;
  if (mode == Mode::Measure)
    return measure(region, kernel, call);
  int choice = choices.empty() ? -1 : choices[region.product];
  if (choice < 0)
    return;
  results.resize(1);
  results[0].resize(size_t(call.out[0].elements()));
  VariantCall other(call, &region.variants[size_t(choice)], results[0].data());
  if (const Kernel *row = selectKernel(step.opName, other.made, activeIsa()))
    timed(*row, other.made, 1);
}

void PrecisionMeter::after(const StepInfo &step, const Kernel &, const KernelCall &call) {
  auto found = byStep.find(&step);
  if (found == byStep.end() || call.out[0].elements() == 0)
    return;
  PrecisionRegion &region = *found->second;
  auto *result = call.out[0].as<float>();
  size_t elements = size_t(call.out[0].elements());
  if (mode == Mode::Simulate) {
    if (!choices.empty() && choices[region.product] >= 0)
      std::memcpy(result, results[0].data(), elements * sizeof(float));
    return;
  }
  for (size_t i = 0; i < elements; ++i)
    region.signal += double(result[i]) * double(result[i]);
  for (size_t v = 0; v < region.variants.size(); ++v)
    for (size_t i = 0; i < elements; ++i) {
      double off = double(results[v][i]) - double(result[i]);
      region.variants[v].noise += off * off;
    }
}

} // namespace dspark
