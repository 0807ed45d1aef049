#include "compiler/Pipeline/Codegen.h"
#include "compiler/Target/FusedCodegen.h"
#include "dialects/DSpark/Infer.h"
#include "dialects/Plan/Plan.h"
#include <set>

using namespace mlir;

namespace dspark {
namespace {

// The innermost dim of the result that is not 1 is what generated code walks. An operand whose dim there is 1
// (or that has no such dim) stays in place: stride 0. The runtime checks the pattern against the true shapes
// (kernels/fused).
std::vector<int> innerStrides(ArrayRef<TensorInfo> inputs, const TensorInfo &result, size_t outputs) {
  int fromEnd = 1;
  while (fromEnd <= result.rank() && result.dims[result.rank() - fromEnd].is(1))
    ++fromEnd;
  std::vector<int> inner;
  for (const TensorInfo &input : inputs) {
    bool isBroadcast = input.rank() < fromEnd || input.dims[input.rank() - fromEnd].is(1);
    inner.push_back(isBroadcast ? 0 : 1);
  }
  inner.insert(inner.end(), outputs, 1);
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
  TensorInfo result = ir::infoFromType(launch.getResult(0).getType());
  if (!result.hasRank)
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
  spec.inner = innerStrides(inputs, result, launch.getNumResults());
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

StatusOr<GeneratedCode> generateCode(func::FuncOp func, std::optional<Isa> cap, int threads) {
  std::vector<FusedKernelSpec> specs;
  std::set<std::string> symbols;
  func.walk([&](plan::LaunchOp launch) {
    if (launch.getOp() != "fused")
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
  for (int level = 0; level < kIsaCount; ++level) {
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
