#include "compiler/Pipeline/Codegen.h"
#include "compiler/Target/FusedCodegen.h"
#include "dialects/DSpark/Infer.h"
#include "dialects/Plan/Plan.h"
#include <set>

using namespace mlir;

namespace dspark {
namespace {

// The innermost dim of the full shape that is not 1 is what generated code walks, or with reductions the row.
// An operand whose dims there are 1 (or that has no such dims) stays in place: stride 0. The runtime checks
// the pattern against the true shapes (kernels/fused).
std::vector<int> innerStrides(ArrayRef<TensorInfo> inputs, const TensorInfo &full,
                              const FusedProgram &program) {
  int first = 1, last = std::max(program.rowAxes, 1); // counted from the end
  while (program.rowAxes == 0 && first <= full.rank() && full.dims[full.rank() - first].is(1))
    last = ++first;
  std::vector<int> inner;
  for (const TensorInfo &input : inputs) {
    bool varies = false;
    for (int back = first; back <= std::min(last, input.rank()); ++back)
      varies |= !input.dims[input.rank() - back].is(1);
    inner.push_back(varies);
  }
  for (size_t r = 0; r < program.results.size(); ++r)
    inner.push_back(!program.body().isReduced(r));
  return inner;
}

std::optional<FusedKernelSpec> specOf(plan::LaunchOp launch) {
  std::vector<TensorInfo> inputs;
  FusedKernelSpec spec;
  for (Value operand : launch.getInputs()) {
    inputs.push_back(ir::infoFromType(operand.getType()));
    spec.types.push_back(inputs.back().type);
    if (!inputs.back().hasRank)
      return std::nullopt;
  }
  InferContext ctx;
  TensorInfo full;
  if (!broadcastDims(ctx, inputs, full))
    return std::nullopt;
  ir::AttrList attributes;
  attributes.add(launch.getConfigAttr());
  std::string error;
  std::optional<FusedProgram> program =
      FusedProgram::parse(attributes.view(), launch.getInputs().size(), launch.getNumResults(), error);
  if (!program || !canGenerate(*program))
    return std::nullopt;
  spec.program = std::move(*program);
  spec.types.insert(spec.types.end(), launch.getNumResults(), DType::F32);
  spec.inner = innerStrides(inputs, full, spec.program);
  return spec;
}

void attach(plan::LaunchOp launch, const FusedKernelSpec &spec) {
  Builder builder(launch.getContext());
  SmallVector<int64_t> inner(spec.inner.begin(), spec.inner.end());
  NamedAttrList config(launch.getConfigAttr());
  config.set("inner", builder.getDenseI64ArrayAttr(inner));
  launch.setConfigAttr(config.getDictionary(launch.getContext()));
  launch.setSymbol(spec.symbol());
}

} // namespace

StatusOr<GeneratedCode> generateCode(ModuleOp module, std::optional<Isa> cap, int threads) {
  std::vector<FusedKernelSpec> specs;
  std::set<std::string> symbols;
  module.walk([&](plan::LaunchOp launch) {
    if (launch.getOp() != "fused" && launch.getOp() != "fused_reduce")
      return;
    std::optional<FusedKernelSpec> spec = specOf(launch);
    if (!spec)
      return;
    attach(launch, *spec);
    if (symbols.insert(spec->symbol()).second)
      specs.push_back(std::move(*spec));
  });
  GeneratedCode code;
  code.kernels = int(specs.size());
  if (specs.empty())
    return code;
  CodegenOptions options;
  options.threads = threads;
  for (int level = 0; level < kVectorIsaCount; ++level) {
    if (cap && Isa(level) > *cap)
      break;
    StatusOr<FusedLibrary> library = compileFused(specs, Isa(level), options);
    if (!library.isOk())
      return library.status();
    code.objects.push_back({Isa(level), std::move(library->elf)});
  }
  return code;
}

} // namespace dspark
