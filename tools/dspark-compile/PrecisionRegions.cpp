#include "tools/dspark-compile/PrecisionRegions.h"
#include "kernels/matmul/gemm.h"
#include "runtime/executor/Contents.h"
#include "runtime/format/PackedLayout.h"
#include "runtime/format/QuantizedWeight.h"
#include <algorithm>
#include <array>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>

namespace dspark {
namespace {

struct Form {
  const char *layout, *arithmetic;
};
constexpr std::array kForms = {Form{"int8_grow_f32", "int8"},
                               Form{"int8_g32_f32", "int8"},
                               Form{"int8_g32_f32", ""},
                               Form{"f16", ""},
                               Form{"bf16", ""},
                               Form{"bf16", "bf16"},
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

// The packed f32 weights of a convolution that may be rounded to bf16, or null; `shape` becomes theirs.
const ValueInfo *convWeights(const Program &program, const StepInfo &step, ConvWeight &shape) {
  Attrs attrs(step.attrs);
  if (step.opName != "conv" || step.inputs.size() < 2 || step.inputs[1] < 0 ||
      attrs.s("packed", "") != "panel16")
    return nullptr;
  const ValueInfo &value = program.values()[size_t(step.inputs[1])];
  if (value.kind != fb::ValueKind::Constant || value.type != DType::F32)
    return nullptr;
  std::vector<int64_t> dims = numbers(value.info.dims);
  shape.group = attrs.i("group", 1);
  shape.outputs = dims[0];
  shape.inputs = dims[1] * shape.group;
  for (size_t i = 2; i < dims.size(); ++i)
    shape.spatial *= dims[i];
  return &value;
}

// Finds the regions of a plan one after the other.
class Finder {
public:
  Finder(const Program &program, const CompileReport &report, const std::vector<std::string> &sensitive)
      : program(program), report(report), sensitive(sensitive), isFound(sensitive.size()) {
    collect(program.body(), steps);
    for (size_t i = 0; i < report.contractions.size(); ++i)
      contractions[report.contractions[i].location] = int(i);
  }

  StatusOr<std::vector<PrecisionRegion>> find() {
    for (const StepInfo *step : steps) {
      for (size_t i = 0; i < sensitive.size(); ++i)
        isFound[i] = isFound[i] || holdsName(step->location, sensitive[i]);
      if (const ValueInfo *weights = productWeights(program, *step))
        DSPARK_RETURN_IF_ERROR(addProduct(*step, *weights));
      else if (auto it = contractions.find(step->location); it != contractions.end() && isContraction(*step))
        DSPARK_RETURN_IF_ERROR(addContraction(*step, it->second));
      else if (step->opName == "attention")
        DSPARK_RETURN_IF_ERROR(addAttention(*step));
    }
    if (products != report.products.size() || attentions != report.attentions.size())
      return Status(Code::Internal, "the plan has " + std::to_string(products) + " products and " +
                                        std::to_string(attentions) + " attentions where the compiler found " +
                                        std::to_string(report.products.size()) + " and " +
                                        std::to_string(report.attentions.size()));
    for (size_t i = 0; i < sensitive.size(); ++i)
      if (!isFound[i])
        return Status(Code::NotFound, "--sensitive: no node is called '" + sensitive[i] + "'");
    addByteForms();
    return std::move(regions);
  }

private:
  static bool isContraction(const StepInfo &step) { return step.opName == "conv" || step.opName == "matmul"; }

  PrecisionRegion &add(const StepInfo &step, std::string node, int64_t k, int64_t n) {
    PrecisionRegion &region = regions.emplace_back();
    region.step = &step;
    region.op = step.opName;
    region.node = std::move(node);
    region.location = step.location;
    region.k = k;
    region.n = n;
    for (const std::string &name : sensitive)
      if (holdsName(step.location, name))
        region.pinnedBecause = "named by --sensitive";
    return region;
  }

  Status addProduct(const StepInfo &step, const ValueInfo &weights) {
    if (products >= report.products.size())
      return Status(Code::Internal, "the plan has products that the compiler did not pack");
    const PackedProduct &product = report.products[products++];
    PrecisionRegion &region = add(step, product.node, product.k, product.n);
    auto isSame = [&](const PackedProduct &other) { return other.node == product.node; };
    if (product.node.empty() || std::count_if(report.products.begin(), report.products.end(), isSame) > 1)
      region.pinnedBecause = "no node of its own";
    if (auto it = contractions.find(step.location); it != contractions.end())
      region.contraction = it->second;
    if (!region.pinnedBecause.empty() || region.k == 0 || region.n == 0)
      return Status::ok();
    std::vector<float> plain = unpackPanels(weights.bytes, region.k, region.n);
    std::map<std::string_view, PackedBytes> packed; // forms may differ in arithmetic alone
    for (Form form : kForms) {
      PackedBytes &weights = packed[form.layout];
      if (!weights) {
        DSPARK_ASSIGN_OR_RETURN(uint64_t size, quantizedBytes(form.layout, region.k, region.n));
        auto bytes = std::make_shared<std::vector<std::byte>>(size);
        DSPARK_RETURN_IF_ERROR(packQuantized(form.layout, region.k, region.n, false, plain, *bytes));
        weights = std::move(bytes);
      }
      region.variants.push_back({form.layout, form.arithmetic, 0, weights});
    }
    return Status::ok();
  }

  Status addAttention(const StepInfo &step) {
    if (attentions >= report.attentions.size())
      return Status(Code::Internal, "the plan has attentions that the compiler did not find");
    const std::string &node = report.attentions[attentions++];
    PrecisionRegion &region = add(step, node, 0, 0);
    if (node.empty() || std::count(report.attentions.begin(), report.attentions.end(), node) > 1 ||
        step.outputs.empty() || program.values()[size_t(step.outputs[0])].type != DType::F32)
      region.pinnedBecause = "no node of its own, or not of f32";
    if (region.pinnedBecause.empty())
      region.variants.push_back({"bf16", "bf16"});
    return Status::ok();
  }

  Status addContraction(const StepInfo &step, int contraction) {
    const ByteContraction &found = report.contractions[size_t(contraction)];
    PrecisionRegion &region = add(step, found.node, found.k, found.n);
    region.contraction = contraction;
    ConvWeight shape;
    const ValueInfo *weights = convWeights(program, step, shape);
    if (!weights || !region.pinnedBecause.empty())
      return Status::ok();
    DSPARK_ASSIGN_OR_RETURN(uint64_t size, packedBytes("bf16", shape));
    auto bytes = std::make_shared<std::vector<std::byte>>(size);
    DSPARK_RETURN_IF_ERROR(roundPanels(shape, weights->bytes, *bytes));
    region.variants.push_back({"bf16", "bf16", 0, std::move(bytes)});
    return Status::ok();
  }

  void addByteForms() {
    std::map<std::string, const StepInfo *> byLocation;
    for (const StepInfo *step : steps)
      byLocation[std::string(step->location)] = step;
    auto stepOf = [&](const char *prefix, int contraction) {
      auto it = byLocation.find(prefix + std::to_string(contraction));
      return it == byLocation.end() ? nullptr : it->second;
    };
    for (PrecisionRegion &region : regions) {
      region.byteStep = region.contraction >= 0 ? stepOf(kByteStep, region.contraction) : nullptr;
      if (!region.byteStep)
        continue;
      region.quantizeStep = stepOf(kQuantizeStep, region.contraction);
      region.input = int(report.contractions[size_t(region.contraction)].input);
      if (region.pinnedBecause.empty())
        region.variants.push_back({kStaticInt8, ""});
    }
  }

  const Program &program;
  const CompileReport &report;
  const std::vector<std::string> &sensitive;
  std::vector<bool> isFound;
  std::vector<const StepInfo *> steps;
  std::map<std::string, int, std::less<>> contractions; // by location
  std::vector<PrecisionRegion> regions;
  size_t products = 0, attentions = 0;
};

} // namespace

bool holdsName(std::string_view location, std::string_view name) {
  for (size_t at = 0; (at = location.find(name, at)) != location.npos; ++at) {
    size_t end = at + name.size();
    bool begins = at == 0 || location[at - 1] == ' ', ends = end == location.size() || location[end] == ',';
    if (begins && ends)
      return true;
  }
  return false;
}

double PrecisionRegion::error(const PrecisionVariant &variant) const {
  return variant.noise == 0                ? 0
         : signal > 0 && variant.noise > 0 ? std::sqrt(variant.noise / signal)
                                           : INFINITY;
}

void PrecisionVariant::sumUp() {
  seconds = predicted = noise = 0;
  for (const RegionCall &call : calls) {
    seconds += call.seconds;
    predicted += call.predicted;
    noise += call.noise;
  }
}

PrecisionVariant PrecisionRegion::upTo(const PrecisionVariant &variant, int64_t rows) const {
  PrecisionVariant made = variant;
  made.mostRows = rows;
  for (size_t i = 0; i < calls.size(); ++i)
    if (calls[i].rows > rows)
      made.calls[i] = calls[i];
  made.sumUp();
  return made;
}

void PrecisionRegion::addRowForms() {
  if (!splitsByRows())
    return;
  std::vector<PrecisionVariant> added;
  for (const PrecisionVariant &variant : variants) {
    std::map<int64_t, double> gains; // by number of rows
    for (size_t i = 0; i < variant.calls.size(); ++i)
      gains[calls[i].rows] += calls[i].seconds - variant.calls[i].seconds;
    double sum = 0, most = 0;
    int64_t rows = 0;
    for (auto [count, gain] : gains)
      if ((sum += gain) > most) {
        most = sum;
        rows = count;
      }
    if (rows > 0 && rows < gains.rbegin()->first)
      added.push_back(upTo(variant, rows));
  }
  variants.insert(variants.end(), added.begin(), added.end());
}

int PrecisionRegion::variantNamed(const std::string &name) {
  for (size_t v = 0; v < variants.size(); ++v)
    if (variants[v].name() == name)
      return int(v);
  for (const PrecisionVariant &variant : variants) {
    if (!splitsByRows())
      break;
    int64_t rows = 0;
    bool isLimited = !variant.isStatic() && variant.mostRows == 0 && name.starts_with(variant.name()) &&
                     std::sscanf(name.c_str() + variant.name().size(), " up to %" SCNd64 " rows", &rows) == 1;
    if (!isLimited || rows <= 0)
      continue;
    if (PrecisionVariant limited = upTo(variant, rows); limited.name() == name) {
      variants.push_back(std::move(limited));
      return int(variants.size() - 1);
    }
  }
  return -1;
}

void PrecisionRegion::finish(double sets) {
  auto perSet = [sets](auto &times) {
    times.seconds /= sets;
    times.predicted /= sets;
  };
  quantizeSeconds /= sets;
  std::for_each(calls.begin(), calls.end(), perSet);
  seconds = predicted = 0;
  for (const RegionCall &call : calls) {
    seconds += call.seconds;
    predicted += call.predicted;
  }
  for (PrecisionVariant &variant : variants) {
    std::for_each(variant.calls.begin(), variant.calls.end(), perSet);
    if (variant.isStatic())
      perSet(variant);
    else
      variant.sumUp();
  }
  addRowForms();
}

// Only what regions read was quantised; what lies before is taken to be as large as the largest of what is
// made of it.
std::vector<PrecisionValue> precisionValues(const CompileReport &report,
                                            std::vector<PrecisionRegion> &regions) {
  std::vector<PrecisionValue> values(report.values.size());
  std::vector<int> regionOf(report.contractions.size(), -1);
  for (size_t r = 0; r < regions.size(); ++r) {
    if (regions[r].contraction >= 0)
      regionOf[size_t(regions[r].contraction)] = int(r);
    if (regions[r].input >= 0) {
      double &seconds = values[size_t(regions[r].input)].quantizeSeconds;
      seconds = std::max(seconds, regions[r].quantizeSeconds);
    }
  }
  for (PrecisionRegion &region : regions)
    if (region.input >= 0)
      region.quantizeSeconds = values[size_t(region.input)].quantizeSeconds;
  for (size_t v = 0; v < values.size(); ++v) {
    const ByteValue &given = report.values[v];
    values[v].region = given.contraction < 0 ? -1 : regionOf[size_t(given.contraction)];
    values[v].operands = given.operands;
    values[v].hasFloatReaders = given.hasFloatReaders;
  }
  std::vector<bool> isMeasured;
  for (const PrecisionValue &value : values)
    isMeasured.push_back(value.quantizeSeconds > 0);
  for (bool hasChanged = true; hasChanged;) {
    hasChanged = false;
    for (const PrecisionValue &value : values)
      for (size_t operand : value.operands)
        if (!isMeasured[operand] && values[operand].quantizeSeconds < value.quantizeSeconds) {
          values[operand].quantizeSeconds = value.quantizeSeconds;
          hasChanged = true;
        }
  }
  return values;
}

StatusOr<std::vector<PrecisionRegion>> precisionRegions(const Program &program, const CompileReport &report,
                                                        const std::vector<std::string> &sensitive) {
  return Finder(program, report, sensitive).find();
}

} // namespace dspark
