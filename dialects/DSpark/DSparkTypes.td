// Types beyond MLIR's own: strings as tensor elements, and values that are not one tensor.
#ifndef DSPARK_TYPES
#define DSPARK_TYPES

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinTypeInterfaces.td"

class DSpark_Type<string name, string typeMnemonic> : TypeDef<DSpark_Dialect, name> { let mnemonic = typeMnemonic; }

def DSpark_StringType : DSpark_Type<"String", "string"> {
  let summary = "an element of a tensor of strings, `tensor<2x!dspark.string>`";
}

def DSpark_SequenceType : DSpark_Type<"Sequence", "sequence"> {
  let summary = "any number of items; the item's type is what all have in common, `!dspark.sequence<tensor<?xf32>>`";
  let parameters = (ins "::mlir::Type":$item);
  let assemblyFormat = "`<` $item `>`";
}

def DSpark_OptionalType : DSpark_Type<"Optional", "optional"> {
  let summary = "one item or none, `!dspark.optional<tensor<4xf32>>`";
  let parameters = (ins "::mlir::Type":$item);
  let assemblyFormat = "`<` $item `>`";
}

def DSpark_MapType : DSpark_Type<"Map", "map"> {
  let summary = "the 1-D tensors of keys and of their values, `!dspark.map<tensor<?xi64>, tensor<?xf32>>`";
  let parameters = (ins "::mlir::Type":$keys, "::mlir::Type":$values);
  let assemblyFormat = "`<` $keys `,` $values `>`";
}

#endif
