// The three questions passes ask of an operation: its shapes, its cost, its legal precisions.
#ifndef DSPARK_INTERFACES
#define DSPARK_INTERFACES

include "mlir/IR/OpBase.td"

def ShapeInterface : OpInterface<"ShapeInterface"> {
  let cppNamespace = "::dspark::ir";
  let description = "Result shapes by the catalogue's shape function of that name.";
  let methods = [InterfaceMethod<"The catalogue entry this operation is bound to.", "::llvm::StringRef",
                                 "getCatalogueName">];
}

def CostInterface : OpInterface<"CostInterface"> {
  let cppNamespace = "::dspark::ir";
  let description = "Work of one execution; bytes are the sum of operand and result bytes.";
  let methods = [InterfaceMethod<"Floating-point operations, a multiply-add counting 2; 0 where a dim is not a number.",
                                 "double", "getFlops",
                                 (ins "::llvm::ArrayRef<::dspark::TensorInfo>":$in,
                                      "::llvm::ArrayRef<::dspark::TensorInfo>":$out)>];
}

def PrecisionInterface : OpInterface<"PrecisionInterface"> {
  let cppNamespace = "::dspark::ir";
  let description = "Which element types the floating-point operands may be given.";
  let methods = [InterfaceMethod<"Whether kernels exist for that element type.", "bool", "isLegalPrecision",
                                 (ins "::mlir::Type":$type)>];
}

#endif
