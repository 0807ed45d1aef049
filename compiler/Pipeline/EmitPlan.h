// Writes a function of plan steps as a plan file: a walk over the operations, one record each.
#pragma once
#include "dialects/DSpark/WeightStore.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime/format/PlanFile.h"

namespace dspark {

/// Where a plan's weights have been written, by name: its functions share them.
using WeightPlaces = std::map<std::string, fb::BlobT>;

/// Adds constants to `writer` (each weight once, streamed from the store) and returns the plan. Errors name
/// the weight or operation.
StatusOr<fb::PlanT> emitPlan(mlir::func::FuncOp func, const WeightStore &weights, PlanWriter &writer,
                             WeightPlaces &places);

} // namespace dspark
