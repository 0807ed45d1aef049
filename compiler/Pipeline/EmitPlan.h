// Writes a function of plan steps as a plan file: a walk over the operations, one record each.
#pragma once
#include "dialects/DSpark/WeightStore.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime/format/PlanFile.h"

namespace dspark {

/// Adds constants to `writer` (each weight once, streamed from the store) and returns the plan. Errors name
/// the weight or operation.
StatusOr<fb::PlanT> emitPlan(mlir::func::FuncOp func, const WeightStore &weights, PlanWriter &writer);

} // namespace dspark
