// Passes within a dialect. Those that derive weights take the store to add recipes to; made without one
// (dspark-opt), they use a store of their own, which is enough to see the IR.
#pragma once
#include "dialects/DSpark/DSpark.h"
#include "dialects/DSpark/WeightStore.h"
#include "dialects/Plan/Plan.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include <memory>

namespace dspark {

std::unique_ptr<mlir::Pass> createFoldConstantsPass(std::shared_ptr<WeightStore> weights = nullptr);
std::unique_ptr<mlir::Pass> createFoldAffinePass(std::shared_ptr<WeightStore> weights = nullptr);
std::unique_ptr<mlir::Pass>
createFuseQuantizedContractionsPass(std::shared_ptr<WeightStore> weights = nullptr);
std::unique_ptr<mlir::Pass> createFuseQuantizedPass(std::shared_ptr<WeightStore> weights = nullptr);
std::unique_ptr<mlir::Pass> createChannelsLastPass(std::shared_ptr<WeightStore> weights = nullptr);
std::unique_ptr<mlir::Pass> createPackWeightsPass(std::shared_ptr<WeightStore> weights = nullptr);
std::unique_ptr<mlir::Pass> createQuantizeContractionsPass();

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/Transforms/Passes.h.inc"
} // namespace dspark
