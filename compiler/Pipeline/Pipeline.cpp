#include "compiler/Pipeline/Pipeline.h"
#include "compiler/Conversion/Passes.h"
#include "compiler/Transforms/Passes.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace dspark {
namespace {

constexpr std::string_view kNames[kPhaseCount] = {"import", "canonicalize", "fuse",    "layout", "regions",
                                                  "pack",   "schedule",     "codegen", "emit"};

} // namespace

std::string_view phaseName(Phase phase) { return kNames[int(phase)]; }

std::optional<Phase> phaseFromName(std::string_view name) {
  for (int i = 0; i < kPhaseCount; ++i)
    if (kNames[i] == name)
      return Phase(i);
  return std::nullopt;
}

bool isOptional(Phase phase) {
  return (phase >= Phase::Canonicalize && phase <= Phase::Pack) || phase == Phase::Codegen;
}

void addPhasePasses(Phase phase, OpPassManager &passes, std::shared_ptr<WeightStore> weights,
                    PrecisionChoices *choices, bool joinsSteps) {
  switch (phase) {
  case Phase::Import:
  case Phase::Codegen:
  case Phase::Emit:
    return;
  case Phase::Canonicalize:
    passes.addNestedPass<func::FuncOp>(createFoldShapesPass());
    passes.addPass(createCanonicalizerPass());
    passes.addPass(createCSEPass());
    return;
  case Phase::Fuse:
    // Quantised clusters first, while they are as the model spells them.
    passes.addNestedPass<func::FuncOp>(createSinkDequantizePass());
    passes.addNestedPass<func::FuncOp>(createFuseQuantizedContractionsPass(weights));
    passes.addNestedPass<func::FuncOp>(createFuseQuantizedPass(weights));
    passes.addNestedPass<func::FuncOp>(createFoldConstantsPass(weights));
    // Affine folding before what follows: it exposes activations behind what were scales and shifts.
    passes.addNestedPass<func::FuncOp>(createFoldAffinePass(weights));
    passes.addNestedPass<func::FuncOp>(createKeepWeightsQuantizedPass());
    passes.addNestedPass<func::FuncOp>(createLiftReshapesPass());
    passes.addNestedPass<func::FuncOp>(createRaiseActivationsPass());
    // Before epilogues, which would take a mask for a residual.
    passes.addNestedPass<func::FuncOp>(createFuseAttentionPass());
    if (choices && choices->bytes != ByteMode::None) {
      passes.addNestedPass<func::FuncOp>(createQuantizeContractionsPass(weights, choices));
      passes.addNestedPass<func::FuncOp>(createSinkDequantizePass());
      passes.addNestedPass<func::FuncOp>(createFuseQuantizedContractionsPass(weights));
      passes.addNestedPass<func::FuncOp>(createFuseQuantizedPass(weights));
    }
    passes.addNestedPass<func::FuncOp>(createFuseEpiloguesPass());
    passes.addPass(createCanonicalizerPass());
    return;
  case Phase::Layout:
    passes.addNestedPass<func::FuncOp>(createChannelsLastPass(weights));
    passes.addPass(createCanonicalizerPass());
    passes.addPass(createCSEPass());
    return;
  case Phase::Regions:
    passes.addNestedPass<func::FuncOp>(createFuseRegionsPass());
    return;
  case Phase::Pack:
    passes.addNestedPass<func::FuncOp>(createPackWeightsPass(weights, choices));
    if (joinsSteps) {
      passes.addNestedPass<func::FuncOp>(createFuseExpandDepthwisePass());
      passes.addNestedPass<func::FuncOp>(createFuseSharedInputPass());
    }
    passes.addPass(createCanonicalizerPass());
    return;
  case Phase::Schedule:
    passes.addNestedPass<func::FuncOp>(createResolveOutputDimsPass());
    passes.addNestedPass<func::FuncOp>(createConvertDSparkToPlanPass());
    passes.addNestedPass<func::FuncOp>(createPlanMemoryPass());
    return;
  }
}

} // namespace dspark
