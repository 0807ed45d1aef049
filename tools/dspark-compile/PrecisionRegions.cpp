#include "tools/dspark-compile/PrecisionRegions.h"
#include "kernels/matmul/gemm.h"
#include "runtime/format/QuantizedWeight.h"
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace dspark {
namespace {

struct Form {
  const char *layout, *arithmetic;
};
constexpr std::array kForms = {Form{"int8_grow_f32", "int8"}, Form{"int8_g32_f32", "int8"}, Form{"bf16", ""},
                               Form{"int4_g32_f32", "int8"}};

// panel16 back to [k][n].
std::vector<float> unpackPanels(std::span<const std::byte> bytes, int64_t k, int64_t n) {
  std::vector<float> plain(size_t(k) * size_t(n));
  const std::byte *at = bytes.data();
  for (int64_t first = 0; first < n; first += kPanel)
    for (int64_t row = 0; row < k; ++row, at += kPanel * 4)
      std::memcpy(plain.data() + row * n + first, at, size_t(std::min(kPanel, n - first)) * 4);
  return plain;
}

void collect(const BlockInfo &block, std::vector<const StepInfo *> &steps) {
  for (const StepInfo &step : block.steps) {
    for (const BlockInfo &inner : step.blocks)
      collect(inner, steps);
    steps.push_back(&step);
  }
}

// The packed f32 weights of a step that the packing pass numbers, or null.
const ValueInfo *productWeights(const Program &program, const StepInfo &step) {
  Attrs attrs(step.attrs);
  if (step.opName != "matmul" || step.inputs.size() < 2 || step.inputs[1] < 0 ||
      attrs.s("packed", "") != "panel16" || attrs.i("trans_a", 0) != 0)
    return nullptr;
  const ValueInfo &value = program.values()[size_t(step.inputs[1])];
  bool isF32 = value.kind == fb::ValueKind::Constant && value.type == DType::F32;
  return isF32 && value.info.dims.size() == 2 ? &value : nullptr;
}

// Names in a location are joined by ", ".
bool holdsName(std::string_view location, std::string_view name) {
  for (size_t at = 0; (at = location.find(name, at)) != location.npos; ++at) {
    size_t end = at + name.size();
    bool begins = at == 0 || location[at - 1] == ' ', ends = end == location.size() || location[end] == ',';
    if (begins && ends)
      return true;
  }
  return false;
}

} // namespace

double PrecisionRegion::error(const PrecisionVariant &variant) const {
  return variant.noise == 0 ? 0 : signal > 0 ? std::sqrt(variant.noise / signal) : INFINITY;
}

StatusOr<std::vector<PrecisionRegion>> precisionRegions(const Program &program,
                                                        const std::vector<std::string> &sensitive) {
  std::vector<const StepInfo *> steps;
  collect(program.body(), steps);
  std::vector<PrecisionRegion> regions;
  std::vector<bool> isFound(sensitive.size());
  for (const StepInfo *step : steps) {
    for (size_t i = 0; i < sensitive.size(); ++i)
      isFound[i] = isFound[i] || holdsName(step->location, sensitive[i]);
    const ValueInfo *weights = productWeights(program, *step);
    if (!weights)
      continue;
    PrecisionRegion region;
    region.step = step;
    region.product = regions.size();
    region.node = step->location;
    bool isTransposed = Attrs(step->attrs).i("trans_b", 0) != 0;
    region.k = weights->info.dims[isTransposed ? 1 : 0].value();
    region.n = weights->info.dims[isTransposed ? 0 : 1].value();
    region.isPinned = std::any_of(sensitive.begin(), sensitive.end(),
                                  [&](const std::string &name) { return holdsName(step->location, name); });
    std::vector<float> plain;
    if (!region.isPinned && region.k > 0 && region.n > 0)
      plain = unpackPanels(weights->bytes, region.k, region.n);
    for (Form form : kForms) {
      if (plain.empty())
        break;
      PrecisionVariant variant{form.layout, form.arithmetic, {}};
      DSPARK_ASSIGN_OR_RETURN(uint64_t bytes, quantizedBytes(form.layout, region.k, region.n));
      variant.weights.resize(bytes);
      DSPARK_RETURN_IF_ERROR(packQuantized(form.layout, region.k, region.n, false, plain, variant.weights));
      region.variants.push_back(std::move(variant));
    }
    regions.push_back(std::move(region));
  }
  for (size_t i = 0; i < sensitive.size(); ++i)
    if (!isFound[i])
      return Status(Code::NotFound, "--sensitive: no node is called '" + sensitive[i] + "'");
  return regions;
}

} // namespace dspark
