// The `dspark` dialect: what is computed. See DSparkOps.td for the operations.
#ifndef DSPARK_BASE
#define DSPARK_BASE

include "mlir/IR/OpBase.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "dialects/DSpark/DSparkInterfaces.td"

def DSpark_Dialect : Dialect {
  let name = "dspark";
  let cppNamespace = "::dspark::ir";
  let summary = "Tensor computation at the level where precision, device and fusion are decided";
  let description = [{
    Values are dense tensors. Precision is in the element type, with explicit casts. Operations that no pass reasons
    about are `dspark.kernel "name"`, bound to the operator catalogue; typed operations are bound to the entry of their
    own name. Result types follow from the catalogue's shape functions, and every operation is verified against them.

    An absent optional operand in the middle of an operand list is a `dspark.none`; trailing ones are left out.
    Signed integers are signless (`i8`), unsigned ones are explicit (`ui8`), bool is `i1`, strings are `!dspark.string`.
    Sequences, optionals and maps have types of their own, and `dspark.list` is what is done to them.
  }];
  let useDefaultAttributePrinterParser = 0;
  let useDefaultTypePrinterParser = 1;
  let hasConstantMaterializer = 1;
}

include "dialects/DSpark/DSparkTypes.td"

def DSpark_Tensor : Type<CPred<"::llvm::isa<::mlir::TensorType>($_self)">, "tensor", "::mlir::TensorType">;
def DSpark_Operand : Type<CPred<"::llvm::isa<::mlir::TensorType, ::mlir::NoneType>($_self)">,
                          "tensor or absent operand">;

// What control flow passes on.
def DSpark_Value : Type<CPred<"::llvm::isa<::mlir::TensorType, ::dspark::ir::SequenceType, ::dspark::ir::OptionalType, "
                              "::dspark::ir::MapType>($_self)">, "tensor, sequence, optional or map">;
def DSpark_ValueOperand : Type<CPred<"::llvm::isa<::mlir::TensorType, ::dspark::ir::SequenceType, "
                                     "::dspark::ir::OptionalType, ::dspark::ir::MapType, ::mlir::NoneType>($_self)">,
                               "value or absent operand">;

class DSpark_Op<string mnemonic, list<Trait> traits = []> : Op<DSpark_Dialect, mnemonic, traits>;

// An operation of the catalogue. Operands and results are those of the catalogue entry.
class DSpark_CatalogueOp<string mnemonic, list<Trait> traits = []>
    : DSpark_Op<mnemonic, !listconcat(traits, [Pure,
                DeclareOpInterfaceMethods<ShapeInterface>,
                DeclareOpInterfaceMethods<CostInterface>,
                DeclareOpInterfaceMethods<PrecisionInterface>])> {
  let results = (outs Variadic<DSpark_Tensor>:$outputs);
  let assemblyFormat = "`(` $inputs `)` attr-dict `:` functional-type($inputs, results)";
  let hasVerifier = 1;
  // The methods below are the same for all (CatalogueOps.h).
  let extraClassDefinition = [{
    ::llvm::LogicalResult $cppClass::verify() { return ::dspark::ir::verifyAgainstCatalogue(getOperation()); }
    ::llvm::StringRef $cppClass::getCatalogueName() { return ::dspark::ir::catalogueName(getOperation()); }
    double $cppClass::getFlops(::llvm::ArrayRef<::dspark::TensorInfo> in, ::llvm::ArrayRef<::dspark::TensorInfo> out) {
      return ::dspark::ir::catalogueFlops(getOperation(), in, out);
    }
    bool $cppClass::isLegalPrecision(::mlir::Type type) { return ::dspark::ir::isLegalPrecision(getOperation(), type); }
  }];
}

#endif
