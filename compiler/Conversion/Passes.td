#ifndef DSPARK_CONVERSION_PASSES
#define DSPARK_CONVERSION_PASSES

include "mlir/Pass/PassBase.td"

def ConvertDSparkToPlanPass : Pass<"dspark-convert-to-plan", "::mlir::func::FuncOp"> {
  let summary = "Rewrites a function of dspark operations as plan steps";
  let description = [{
    One step per catalogue operation, in program order; fused regions become launches of "fused" with their program as
    attributes. Fails, naming the operation, on anything a plan cannot hold.
  }];
  let dependentDialects = ["::dspark::plan::PlanDialect"];
}

#endif
