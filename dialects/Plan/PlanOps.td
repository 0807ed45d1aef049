// Operations of the `plan` dialect: one per kind of record in the plan file.
#ifndef PLAN_OPS
#define PLAN_OPS

include "dialects/Plan/PlanBase.td"

def Plan_ConstantOp : Plan_Op<"constant", [Pure]> {
  let summary = "bytes of the plan file";
  let description = [{
    C1: the type is static.

    ```mlir
    %w = plan.constant @conv1.weight layout "panel16" : tensor<64x3x7x7xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$weight, OptionalAttr<StrAttr>:$layout);
  let results = (outs Plan_Tensor:$result);
  let assemblyFormat = "$weight (`layout` $layout^)? attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Plan_LiteralOp : Plan_Op<"literal", [Pure, AllTypesMatch<["value", "result"]>]> {
  let summary = "a small constant, written to the plan file with the weights";
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Plan_Tensor:$result);
  let assemblyFormat = "attr-dict $value";
}

def Plan_AbsentOp : Plan_Op<"absent", [Pure]> {
  let summary = "an absent optional operand";
  let results = (outs NoneType:$result);
  let assemblyFormat = "attr-dict";
}

def Plan_DimsOp : Plan_Op<"dims", [Pure]> {
  let summary = "integers computed from dim symbols when shapes are bound";
  let arguments = (ins StrArrayAttr:$exprs);
  let results = (outs Plan_Tensor:$result);
  let assemblyFormat = "$exprs attr-dict `:` type($result)";
}

def Plan_LaunchOp : Plan_Op<"launch"> {
  let summary = "one run of a catalogue operator";
  let description = [{
    `config` holds the operator's attributes. `in_place` is the operand whose buffer the first result takes over. `symbol`
    names generated code. `operands` to free after the launch follow as plan.free.

    C1: the catalogue has the operator. C2: in_place names an operand of the first result's byte size, where both are
    static.

    ```mlir
    %y = plan.launch "unary"(%x) {kind = "relu"} in_place 0 : (tensor<4xf32>) -> tensor<4xf32>
    ```
  }];
  let arguments = (ins StrAttr:$op, Variadic<Plan_Operand>:$inputs, OptionalAttr<DictionaryAttr>:$config,
                       OptionalAttr<I64Attr>:$in_place, OptionalAttr<StrAttr>:$symbol);
  let results = (outs Variadic<Plan_Tensor>:$outputs);
  let assemblyFormat = [{
    $op `(` $inputs `)` ($config^)? (`in_place` $in_place^)? (`symbol` $symbol^)? `:` functional-type($inputs, results)
    attr-dict
  }];
  let hasVerifier = 1;
}

def Plan_TransferOp : Plan_Op<"transfer", [SameOperandsAndResultType]> {
  let summary = "a tensor copied from one device to another";
  let description = "C1: source and destination differ.";
  let arguments = (ins Plan_Tensor:$input, StrAttr:$source, StrAttr:$destination);
  let results = (outs Plan_Tensor:$output);
  let assemblyFormat = "$input $source `to` $destination attr-dict `:` type($output)";
  let hasVerifier = 1;
}

def Plan_FreeOp : Plan_Op<"free"> {
  let summary = "the end of values' lifetimes";
  let description = "C1: a value is not used after its free, in the same block.";
  let arguments = (ins Variadic<Plan_Tensor>:$values);
  let assemblyFormat = "$values attr-dict `:` type($values)";
  let hasVerifier = 1;
}

def Plan_YieldOp : Plan_Op<"yield", [Pure, Terminator, ReturnLike]> {
  let summary = "results of the enclosing block";
  let arguments = (ins Variadic<Plan_ValueOperand>:$results);
  let assemblyFormat = "($results^ `:` type($results))? attr-dict";
}

def Plan_IfOp : Plan_Op<"if", [NoRegionArguments]> {
  let summary = "one of two step lists";
  let description = "C1: both blocks yield as many values as there are results.";
  let arguments = (ins Plan_Tensor:$condition);
  let results = (outs Variadic<Plan_Value>:$outputs);
  let regions = (region SizedRegion<1>:$then_body, SizedRegion<1>:$else_body);
  let assemblyFormat = [{
    $condition `:` type($condition) (`->` type($outputs)^)? attr-dict-with-keyword $then_body `else` $else_body
  }];
  let hasVerifier = 1;
}

def Plan_LoopOp : Plan_Op<"loop"> {
  let summary = "a step list run per iteration; operands and block as dspark.loop";
  let description = "C1: the block yields the next condition and one value per result.";
  let arguments = (ins Variadic<Plan_ValueOperand>:$inputs, OptionalAttr<DictionaryAttr>:$config);
  let results = (outs Variadic<Plan_Value>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`(` $inputs `)` ($config^)? `:` functional-type($inputs, results) attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

def Plan_ListOp : Plan_Op<"list"> {
  let summary = "what is done to a sequence, optional or map; as dspark.list";
  let arguments = (ins StrAttr:$op, Variadic<Plan_ValueOperand>:$inputs, OptionalAttr<DictionaryAttr>:$config);
  let results = (outs Plan_Value:$output);
  let assemblyFormat = "$op `(` $inputs `)` ($config^)? `:` functional-type($inputs, results) attr-dict";
}

#endif
