// The `plan` dialect: how, where and when. See PlanOps.td for the operations.
#ifndef PLAN_BASE
#define PLAN_BASE

include "mlir/IR/OpBase.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"

def Plan_Dialect : Dialect {
  let name = "plan";
  let cppNamespace = "::dspark::plan";
  let summary = "A flat list of steps over typed values, as the plan file stores it";
  let description = [{
    A function of this dialect is what the runtime walks: launches of catalogue operators, dims computed from symbols,
    branches and loops over nested lists. Emission (compiler/Pipeline/EmitPlan.cpp) is a walk over it, one operation per
    record. Lifetimes are explicit: `plan.free` ends a value's, and `in_place` lets a result take over an operand's
    buffer.
  }];
}

def Plan_Tensor : Type<CPred<"::llvm::isa<::mlir::TensorType>($_self)">, "tensor", "::mlir::TensorType">;
// Sequences, optionals and maps have the types of the `dspark` dialect.
def Plan_Value : Type<CPred<"!::llvm::isa<::mlir::NoneType>($_self)">, "tensor, sequence, optional or map">;
def Plan_ValueOperand : Type<CPred<"true">, "value or absent operand">;
def Plan_Operand : Type<CPred<"::llvm::isa<::mlir::TensorType, ::mlir::NoneType>($_self)">, "tensor or absent operand">;

class Plan_Op<string mnemonic, list<Trait> traits = []> : Op<Plan_Dialect, mnemonic, traits>;

#endif
