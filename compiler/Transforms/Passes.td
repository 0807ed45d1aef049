#ifndef DSPARK_TRANSFORMS_PASSES
#define DSPARK_TRANSFORMS_PASSES

include "mlir/Pass/PassBase.td"

def FoldShapesPass : Pass<"dspark-fold-shapes", "::mlir::func::FuncOp"> {
  let summary = "Replaces shape arithmetic by dim expressions and known branches by their block";
  let description = [{
    Every integer value whose contents follow from dims that inputs bind becomes a dspark.dims (or, if all are numbers, a
    dspark.constant); small floating-point contents that are known become constants. An If whose condition is known is
    replaced by the taken block. Result types are refined by what is known.
  }];
}

def ResolveOutputDimsPass : Pass<"dspark-resolve-output-dims", "::mlir::func::FuncOp"> {
  let summary = "Records each result's dims, as expressions over the inputs' symbols, in dspark.dims";
}

def PlanMemoryPass : Pass<"plan-memory", "::mlir::func::FuncOp"> {
  let summary = "Marks ends of lifetimes and results that take over an operand's buffer";
  let description = [{
    Adds plan.free after the last use of each value that a step of the same block makes, and sets in_place where the
    catalogue allows it and the operand dies there.
  }];
  let dependentDialects = ["::dspark::plan::PlanDialect"];
}

#endif
