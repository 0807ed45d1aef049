// The order of things: every phase of a compile, and the passes each consists of.
#pragma once
#include "compiler/Transforms/PrecisionChoices.h"
#include "dialects/DSpark/WeightStore.h"
#include "mlir/Pass/PassManager.h"
#include <memory>
#include <optional>
#include <string_view>

namespace dspark {

/// In the order they run. A compile can stop after any (--stop-after), dump each (--dump-phases) and time
/// each
/// (--timing).
enum class Phase {
  Import,       // the model as a function of dspark operations
  Canonicalize, // shape subgraphs become dim expressions, small constants fold, branches on known conditions
                // vanish
  Fuse,         // patterns: norms, activations, batch norm into convolutions, epilogues, weight-only int8
  Layout,       // channels-last for convolutions and their neighbours
  Regions,      // chains of elementwise operations become dspark.fused
  Pack,         // constant operands of contractions get the kernels' layout
  Schedule,     // dspark -> plan; lifetimes, in-place results
  Codegen,      // native code for fused steps
  Emit,         // the plan file
};
inline constexpr int kPhaseCount = 9;

/// "import", "canonicalize" ...
std::string_view phaseName(Phase phase);
std::optional<Phase> phaseFromName(std::string_view name);

/// Whether a plan is right without that phase, only slower: -O0 leaves these out.
bool isOptional(Phase phase);

/// Adds the passes of a phase, to run on a module. Import, Codegen and Emit have none: they are functions of
/// compiler/Pipeline/Compile.h. Passes that derive weights add recipes to `weights`; `choices` may be null.
/// `joinsSteps`: convolutions, or products, may become one step.
void addPhasePasses(Phase phase, mlir::OpPassManager &passes, std::shared_ptr<WeightStore> weights,
                    PrecisionChoices *choices = nullptr, bool joinsSteps = true);

} // namespace dspark
