// Operations of the `dspark` dialect. Operand order and attribute names are those of the operator catalogue
// (kernels/<family>/), whose shape functions also verify them; constraints that concern one operation are numbered
// C1, C2 ... and the tests (test/Dialect/DSpark/invalid.mlir) carry the label.
#ifndef DSPARK_OPS
#define DSPARK_OPS

include "dialects/DSpark/DSparkBase.td"

defvar OptI64 = OptionalAttr<I64Attr>;
defvar OptF64 = OptionalAttr<F64Attr>;
defvar OptStr = OptionalAttr<StrAttr>;
defvar OptInts = OptionalAttr<DenseI64ArrayAttr>;
defvar Operands = Variadic<DSpark_Operand>;

//===-- Sources ------------------------------------------------------------------------------------------------===//

def DSpark_ConstantOp : DSpark_Op<"constant", [Pure, ConstantLike, AllTypesMatch<["value", "result"]>]> {
  let summary = "a small constant";
  let description = [{
    At most 8 KiB; larger constants are `dspark.weight`, whose bytes stay outside the IR.

    C1: the value's type is the result type. C2: at most 8192 bytes.

    ```mlir
    %0 = dspark.constant dense<[1, -1]> : tensor<2xi64>
    ```
  }];
  let arguments = (ins ElementsAttr:$value);
  let results = (outs DSpark_Tensor:$result);
  let assemblyFormat = "attr-dict $value";
  let builders = [OpBuilder<(ins "::mlir::ElementsAttr":$value), [{ build($_builder, $_state, value.getType(), value); }]>];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def DSpark_WeightOp : DSpark_Op<"weight", [Pure]> {
  let summary = "a tensor whose bytes lie in the weight store";
  let description = [{
    The type gives the logical dims; `layout` names a packed form of the bytes ("" is row-major).

    C1: the type is static. C2: the layout is one the runtime knows.

    ```mlir
    %w = dspark.weight @conv1.weight : tensor<64x3x7x7xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$weight, OptStr:$layout);
  let results = (outs DSpark_Tensor:$result);
  let assemblyFormat = "$weight attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def DSpark_DimsOp : DSpark_Op<"dims", [Pure]> {
  let summary = "integers computed from dim symbols";
  let description = [{
    A 1-D tensor (or a scalar) of i64 whose elements are expressions over the symbols that the function's inputs bind.
    What shape subgraphs fold to.

    C1: the result is tensor<i64> with one expression or tensor<Nxi64> with N. C2: every expression parses.

    ```mlir
    %0 = dspark.dims ["batch", "2*seq + 1", "64"] : tensor<3xi64>
    ```
  }];
  let arguments = (ins StrArrayAttr:$exprs);
  let results = (outs DSpark_Tensor:$result);
  let assemblyFormat = "$exprs attr-dict `:` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def DSpark_NoneOp : DSpark_Op<"none", [Pure]> {
  let summary = "an absent optional operand";
  let results = (outs NoneType:$result);
  let assemblyFormat = "attr-dict";
}

//===-- Elementwise --------------------------------------------------------------------------------------------===//

def DSpark_UnaryOp : DSpark_CatalogueOp<"unary"> {
  let summary = "y = kind(x), element by element";
  let description = [{
    `kind` is one of kernels/elementwise/kinds.def; alpha and beta are its parameters, ONNX's defaults if absent.

    ```mlir
    %y = dspark.unary(%x) {kind = "relu"} : (tensor<?x8xf32>) -> tensor<?x8xf32>
    ```
  }];
  let arguments = (ins Operands:$inputs, StrAttr:$kind, OptF64:$alpha, OptF64:$beta, OptI64:$detect_negative,
                       OptI64:$detect_positive);
  let hasFolder = 1;
}

def DSpark_BinaryOp : DSpark_CatalogueOp<"binary"> {
  let summary = "y = kind(a, b) with numpy broadcasting";
  let description = [{
    ```mlir
    %y = dspark.binary(%a, %b) {kind = "add"} : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    ```
  }];
  let arguments = (ins Operands:$inputs, StrAttr:$kind);
  let hasFolder = 1;
}

def DSpark_CompareOp : DSpark_CatalogueOp<"compare"> {
  let summary = "y = a kind b, as i1, with numpy broadcasting";
  let arguments = (ins Operands:$inputs, StrAttr:$kind);
}

def DSpark_SelectOp : DSpark_CatalogueOp<"select"> {
  let summary = "y = cond ? a : b with numpy broadcasting";
  let arguments = (ins Operands:$inputs);
}

def DSpark_CastOp : DSpark_CatalogueOp<"cast"> {
  let summary = "y = x in another element type";
  let description = "`to` is a DType code (ONNX's numbers).";
  let arguments = (ins Operands:$inputs, I64Attr:$to, OptI64:$saturate, OptStr:$round_mode);
  let hasFolder = 1;
}

def DSpark_ClipOp : DSpark_CatalogueOp<"clip"> {
  let summary = "y = min(max(x, low), high)";
  let arguments = (ins Operands:$inputs);
}

//===-- Reductions and normalisation ---------------------------------------------------------------------------===//

def DSpark_ReduceOp : DSpark_CatalogueOp<"reduce"> {
  let summary = "reduction over axes";
  let arguments = (ins Operands:$inputs, StrAttr:$kind, OptInts:$axes, OptI64:$keepdims, OptI64:$noop_with_empty_axes);
}

def DSpark_SoftmaxOp : DSpark_CatalogueOp<"softmax"> {
  let summary = "softmax, log-softmax or hardmax along one axis";
  let arguments = (ins Operands:$inputs, OptStr:$kind, OptI64:$axis);
}

def DSpark_LayerNormOp : DSpark_CatalogueOp<"layer_norm"> {
  let summary = "layer norm (kind layer) or rms norm (kind rms) over the axes from `axis` on";
  let arguments = (ins Operands:$inputs, OptStr:$kind, OptI64:$axis, OptF64:$epsilon, OptI64:$stash_type);
}

def DSpark_BatchNormOp : DSpark_CatalogueOp<"batch_norm"> {
  let summary = "y = (x - mean) / sqrt(var + epsilon) * scale + bias per channel (axis 1)";
  let arguments = (ins Operands:$inputs, OptF64:$epsilon);
}

//===-- Contractions -------------------------------------------------------------------------------------------===//

def DSpark_MatmulOp : DSpark_CatalogueOp<"matmul"> {
  let summary = "y = act(a @ b + bias + residual)";
  let description = [{
    Batch dims broadcast. bias is [N]; residual has the result's shape. `packed` names the layout of b's bytes; for
    weights of few bits `arithmetic` "int8" lets the kernel quantise a's rows, for weights in bf16 "bf16" lets it round
    them, and `gated` makes y = act(g) * u of the two halves of b's columns.

    ```mlir
    %y = dspark.matmul(%a, %b) : (tensor<?x64xf32>, tensor<64x8xf32>) -> tensor<?x8xf32>
    ```
  }];
  let arguments = (ins Operands:$inputs, OptI64:$trans_a, OptI64:$trans_b, OptStr:$packed, OptStr:$arithmetic,
                       OptI64:$gated, OptStr:$activation, OptF64:$act_alpha, OptF64:$act_beta);
}

def DSpark_MatmulDequantOp : DSpark_CatalogueOp<"matmul_dequant"> {
  let summary = "y = act(a @ ((b - zero_point) * scale) + bias + residual) with b kept as int8";
  let arguments = (ins Operands:$inputs, OptI64:$trans_b, OptStr:$packed, OptStr:$activation, OptF64:$act_alpha,
                       OptF64:$act_beta);
}

def DSpark_ConvOp : DSpark_CatalogueOp<"conv"> {
  let summary = "y = act(conv(x, w) + bias + residual), 1 to 3 spatial dims";
  let description = [{
    x is N,C,spatial (layout "nchw", the default) or N,spatial,C ("nhwc"); w is O,I/group,spatial in either. `packed` "bf16"
    holds w rounded to bf16 and rounds x likewise; sums are of f32.

    ```mlir
    %y = dspark.conv(%x, %w) {strides = array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 1>}
       : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x4x4xf32>
    ```
  }];
  let arguments = (ins Operands:$inputs, OptInts:$strides, OptInts:$pads, OptInts:$dilations, OptInts:$kernel_shape,
                       OptI64:$group, OptStr:$auto_pad, OptStr:$layout, OptStr:$packed, OptStr:$activation,
                       OptF64:$act_alpha, OptF64:$act_beta);
}

def DSpark_ExpandDepthwiseOp : DSpark_CatalogueOp<"expand_depthwise"> {
  let summary = "a 1x1 convolution and the depthwise one behind it: operands x, w1, bias1?, w2, bias2?";
  let description = [{
    y = act(depthwise(act1(x * w1 + bias1), w2) + bias2), channels last. What lies between is never written. The window and
    `activation` are those of the second convolution; `expand_activation` with its parameters is act1. w1 is packed as
    `expand_packed` says, panel16 (the default) or bf16, w2 as depthwise.
  }];
  let arguments = (ins Operands:$inputs, OptInts:$strides, OptInts:$pads, OptInts:$dilations, OptInts:$kernel_shape,
                       OptI64:$group, OptStr:$auto_pad, OptStr:$layout, OptStr:$packed, OptStr:$activation,
                       OptF64:$act_alpha, OptF64:$act_beta, OptStr:$expand_activation, OptF64:$expand_act_alpha,
                       OptF64:$expand_act_beta, OptStr:$expand_packed);
}

def DSpark_ConvTransposeOp : DSpark_CatalogueOp<"conv_transpose"> {
  let summary = "transposed convolution; w is I,O/group,spatial";
  let arguments = (ins Operands:$inputs, OptInts:$strides, OptInts:$pads, OptInts:$dilations, OptInts:$kernel_shape,
                       OptInts:$output_padding, OptInts:$output_shape, OptI64:$group, OptStr:$auto_pad, OptStr:$layout,
                       OptStr:$packed, OptStr:$activation, OptF64:$act_alpha, OptF64:$act_beta);
}

def DSpark_PoolOp : DSpark_CatalogueOp<"pool"> {
  let summary = "max, average or lp pooling";
  let arguments = (ins Operands:$inputs, StrAttr:$kind, OptInts:$kernel_shape, OptInts:$strides, OptInts:$pads,
                       OptInts:$dilations, OptStr:$auto_pad, OptI64:$ceil_mode, OptI64:$count_include_pad, OptI64:$p,
                       OptI64:$storage_order, OptStr:$layout);
}

def DSpark_ResizeOp : DSpark_CatalogueOp<"resize"> {
  let summary = "resampling; operands x, roi?, scales?, sizes?";
  let arguments = (ins Operands:$inputs, OptStr:$mode, OptStr:$coordinate_transformation_mode, OptStr:$nearest_mode,
                       OptF64:$cubic_coeff_a, OptI64:$exclude_outside, OptF64:$extrapolation_value, OptI64:$antialias,
                       OptInts:$axes, OptStr:$keep_aspect_ratio_policy, OptStr:$layout);
}

//===-- Shape and movement -------------------------------------------------------------------------------------===//

def DSpark_ShapeOp : DSpark_CatalogueOp<"shape"> {
  let summary = "dims of x in [start, end) as i64";
  let arguments = (ins Operands:$inputs, OptI64:$start, OptI64:$end);
}
def DSpark_ReshapeOp : DSpark_CatalogueOp<"reshape"> {
  let summary = "x under another shape; 0 copies a dim, -1 is what remains";
  let arguments = (ins Operands:$inputs, OptI64:$allowzero);
  let hasFolder = 1;
}
def DSpark_SqueezeOp : DSpark_CatalogueOp<"squeeze"> {
  let summary = "x without the given axes of size 1";
  let arguments = (ins Operands:$inputs);
}
def DSpark_UnsqueezeOp : DSpark_CatalogueOp<"unsqueeze"> {
  let summary = "x with axes of size 1 inserted";
  let arguments = (ins Operands:$inputs);
}
def DSpark_IdentityOp : DSpark_CatalogueOp<"identity"> {
  let summary = "x";
  let arguments = (ins Operands:$inputs);
  let hasFolder = 1;
}
def DSpark_TransposeOp : DSpark_CatalogueOp<"transpose"> {
  let summary = "axes permuted: result axis i is x's axis perm[i]";
  let description = [{
    ```mlir
    %y = dspark.transpose(%x) {perm = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
    ```
  }];
  let arguments = (ins Operands:$inputs, OptInts:$perm);
  let hasFolder = 1;
}
def DSpark_ConcatOp : DSpark_CatalogueOp<"concat"> {
  let summary = "operands joined along axis";
  let arguments = (ins Operands:$inputs, I64Attr:$axis);
  let hasFolder = 1;
}
def DSpark_SplitOp : DSpark_CatalogueOp<"split"> {
  let summary = "x cut along axis";
  let arguments = (ins Operands:$inputs, OptI64:$axis, OptI64:$num_outputs);
}
def DSpark_SliceOp : DSpark_CatalogueOp<"slice"> {
  let summary = "x[starts:ends:steps] along axes; operands x, starts, ends, axes?, steps?";
  let arguments = (ins Operands:$inputs);
}
def DSpark_PadOp : DSpark_CatalogueOp<"pad"> {
  let summary = "padding; operands x, pads, value?, axes?";
  let arguments = (ins Operands:$inputs, OptStr:$mode);
}
def DSpark_ExpandOp : DSpark_CatalogueOp<"expand"> {
  let summary = "x broadcast to a shape";
  let arguments = (ins Operands:$inputs);
  let hasFolder = 1;
}
def DSpark_GatherOp : DSpark_CatalogueOp<"gather"> {
  let summary = "slices of x along axis at the given indices";
  let arguments = (ins Operands:$inputs, OptI64:$axis);
}

//===-- Quantisation and recurrence ----------------------------------------------------------------------------===//

def DSpark_QuantizeOp : DSpark_CatalogueOp<"quantize_linear"> {
  let summary = "integers from floats: saturate(round(x / scale) + zero_point)";
  let arguments = (ins Operands:$inputs, OptI64:$axis, OptI64:$block_size, OptI64:$output_dtype, OptI64:$saturate,
                       OptI64:$precision);
}
def DSpark_DequantizeOp : DSpark_CatalogueOp<"dequantize_linear"> {
  let summary = "floats from integers: (x - zero_point) * scale";
  let arguments = (ins Operands:$inputs, OptI64:$axis, OptI64:$block_size, OptI64:$output_dtype);
}
def DSpark_QlinearMatmulOp : DSpark_CatalogueOp<"qlinear_matmul"> {
  let summary = "a @ b of 8-bit operands: operands a, a_scale, a_zero, b, b_scale, b_zero, y_scale?, y_zero?, bias?, residual?";
  let description = [{
    Without y_scale the result is f32, act(product + bias + residual). An 8-bit result has no residual, and relu or clip as
    `activation`, whose parameters are in the result's real values.
  }];
  let arguments = (ins Operands:$inputs, OptI64:$trans_b, OptStr:$packed, OptStr:$activation, OptF64:$act_alpha,
                       OptF64:$act_beta);
}
def DSpark_QlinearConvOp : DSpark_CatalogueOp<"qlinear_conv"> {
  let summary = "convolution of 8-bit operands: operands x, x_scale, x_zero, w, w_scale, w_zero, y_scale?, y_zero?, bias?, residual?";
  let description = "Results and activation as of qlinear_matmul, the window as of conv.";
  let arguments = (ins Operands:$inputs, OptInts:$strides, OptInts:$pads, OptInts:$dilations, OptInts:$kernel_shape,
                       OptI64:$group, OptStr:$auto_pad, OptStr:$layout, OptStr:$packed, OptStr:$activation,
                       OptF64:$act_alpha, OptF64:$act_beta);
}
def DSpark_QlinearBinaryOp : DSpark_CatalogueOp<"qlinear_binary"> {
  let summary = "y = quantised kind(a, b) of 8-bit operands: a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero";
  let arguments = (ins Operands:$inputs, StrAttr:$kind);
}
def DSpark_QlinearPoolOp : DSpark_CatalogueOp<"qlinear_pool"> {
  let summary = "average pooling of 8-bit operands: x, x_scale, x_zero, y_scale, y_zero; without kernel_shape over all pixels";
  let arguments = (ins Operands:$inputs, OptInts:$kernel_shape, OptInts:$strides, OptInts:$pads, OptInts:$dilations,
                       OptStr:$auto_pad, OptI64:$ceil_mode, OptI64:$count_include_pad, OptStr:$layout);
}
def DSpark_LookupOp : DSpark_CatalogueOp<"lookup"> {
  let summary = "y = table[x] for x of 8 bits; the table has 256 entries, that of a signed x begins at -128";
  let arguments = (ins Operands:$inputs);
}
class DSpark_RecurrentOp<string mnemonic> : DSpark_CatalogueOp<mnemonic> {
  let arguments = (ins Operands:$inputs, OptI64:$hidden_size, OptStr:$direction, OptStr:$activations,
                       OptionalAttr<DenseF64ArrayAttr>:$activation_alpha, OptionalAttr<DenseF64ArrayAttr>:$activation_beta,
                       OptF64:$clip, OptI64:$input_forget, OptI64:$linear_before_reset, OptI64:$layout);
}
def DSpark_LstmOp : DSpark_RecurrentOp<"lstm"> { let summary = "LSTM as in ONNX"; }
def DSpark_GruOp : DSpark_RecurrentOp<"gru"> { let summary = "GRU as in ONNX"; }
def DSpark_RnnOp : DSpark_RecurrentOp<"rnn"> { let summary = "simple recurrence as in ONNX"; }

//===-- Everything else ----------------------------------------------------------------------------------------===//

def DSpark_KernelOp : DSpark_Op<"kernel", [Pure, DeclareOpInterfaceMethods<ShapeInterface>]> {
  let summary = "an operator of the catalogue that no pass reasons about";
  let description = [{
    C1: the name is in the catalogue and has no typed operation.

    ```mlir
    %v, %i = dspark.kernel "top_k"(%x, %k) {axis = 1 : i64}
           : (tensor<4x8xf32>, tensor<1xi64>) -> (tensor<4x?xf32>, tensor<4x?xi64>)
    ```
  }];
  let arguments = (ins StrAttr:$name, Operands:$inputs, OptionalAttr<DictionaryAttr>:$config);
  let results = (outs Variadic<DSpark_Tensor>:$outputs);
  let assemblyFormat = "$name `(` $inputs `)` ($config^)? `:` functional-type($inputs, results) attr-dict";
  let hasVerifier = 1;
}

//===-- Structure ----------------------------------------------------------------------------------------------===//

def DSpark_YieldOp : DSpark_Op<"yield", [Pure, Terminator, ReturnLike]> {
  let summary = "results of the enclosing region";
  let arguments = (ins Variadic<DSpark_ValueOperand>:$results);
  let assemblyFormat = "($results^ `:` type($results))? attr-dict";
}

def DSpark_FusedOp : DSpark_Op<"fused", [Pure, IsolatedFromAbove, SingleBlock]> {
  let summary = "a region that reads and writes each tensor once";
  let description = [{
    The body holds f32 unary, binary, compare, select, clip and constant operations, and reductions of rows: reduce,
    softmax and layer_norm over the last `row_axes` axes of the full shape, which is the broadcast shape of the operands.
    It becomes one kernel.

    C1: block arguments have the operands' types. C2: the body holds such operations only. C3: yields match the results.
    C4: every result has the full shape or, with row_axes, that shape with row axes of 1 or without them. C5: reductions
    are over the last row_axes axes.

    ```mlir
    %y = dspark.fused(%x, %b) {row_axes = 1 : i64} : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32> {
    ^bb0(%0: tensor<4x8xf32>, %1: tensor<8xf32>):
      %2 = dspark.binary(%0, %1) {kind = "add"} : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
      %3 = dspark.softmax(%2) : (tensor<4x8xf32>) -> tensor<4x8xf32>
      dspark.yield %3 : tensor<4x8xf32>
    }
    ```
  }];
  let arguments = (ins Variadic<DSpark_Tensor>:$inputs, OptI64:$row_axes);
  let results = (outs Variadic<DSpark_Tensor>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`(` $inputs `)` attr-dict `:` functional-type($inputs, results) $body";
  let hasVerifier = 1;
}

def DSpark_RegionOp : DSpark_Op<"region", [IsolatedFromAbove, SingleBlock]> {
  let summary = "a part of the graph that one device and precision decision covers";
  let description = [{
    C1: block arguments have the operands' types. C2: yields match the results.

    ```mlir
    %y = dspark.region "cpu" "f32"(%x) : (tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%0: tensor<4xf32>):
      dspark.yield %0 : tensor<4xf32>
    }
    ```
  }];
  let arguments = (ins StrAttr:$device, StrAttr:$precision, Variadic<DSpark_Tensor>:$inputs);
  let results = (outs Variadic<DSpark_Tensor>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$device $precision `(` $inputs `)` attr-dict `:` functional-type($inputs, results) $body";
  let hasVerifier = 1;
}

def DSpark_TransferOp : DSpark_Op<"transfer", [Pure, SameOperandsAndResultType]> {
  let summary = "a tensor moved from one device to another";
  let description = [{
    C1: source and destination differ. C2: the executor is one of the two.

    ```mlir
    %y = dspark.transfer %x "cpu" to "gpu" on "gpu" : tensor<4xf32>
    ```
  }];
  let arguments = (ins DSpark_Tensor:$input, StrAttr:$source, StrAttr:$destination, StrAttr:$executor);
  let results = (outs DSpark_Tensor:$output);
  let assemblyFormat = "$input $source `to` $destination `on` $executor attr-dict `:` type($output)";
  let hasVerifier = 1;
}

def DSpark_IfOp : DSpark_Op<"if", [RecursiveMemoryEffects, NoRegionArguments]> {
  let summary = "one of two blocks";
  let description = [{
    C1: the condition is one i1 element. C2: both blocks yield as many values as there are results, of their element
    types (or kinds of list). Dims may differ between the blocks: the result type then says `?` or `*`.

    ```mlir
    %y = dspark.if %c : tensor<i1> -> tensor<?xf32> {
      dspark.yield %a : tensor<2xf32>
    } else {
      dspark.yield %b : tensor<3xf32>
    }
    ```
  }];
  let arguments = (ins DSpark_Tensor:$condition);
  let results = (outs Variadic<DSpark_Value>:$outputs);
  let regions = (region SizedRegion<1>:$then_body, SizedRegion<1>:$else_body);
  let assemblyFormat = [{
    $condition `:` type($condition) (`->` type($outputs)^)? attr-dict-with-keyword $then_body `else` $else_body
  }];
  let hasVerifier = 1;
}

def DSpark_LoopOp : DSpark_Op<"loop", [RecursiveMemoryEffects]> {
  let summary = "ONNX Loop and Scan";
  let description = [{
    Operands: trip count (or none), condition (or none), `num_carried` carried values, then scan inputs. The block takes
    iteration number, condition, carried values and a slice of each scan input; it yields the next condition, the
    carried values and one slice per scan output, which are stacked. Results: final carried values, stacked outputs.

    C1: block arguments are 2 + carried + scan inputs. C2: yields are 1 + results. C3: num_carried <= results.
  }];
  let arguments = (ins Variadic<DSpark_ValueOperand>:$inputs, I64Attr:$num_carried, OptInts:$scan_input_axes,
                       OptInts:$scan_input_directions, OptInts:$scan_output_axes, OptInts:$scan_output_directions);
  let results = (outs Variadic<DSpark_Value>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`(` $inputs `)` attr-dict `:` functional-type($inputs, results) $body";
  let hasVerifier = 1;
}

def DSpark_ListOp : DSpark_Op<"list", [Pure]> {
  let summary = "what is done to a sequence, optional or map";
  let description = [{
    All three are lists when the model runs: of any number of items, of one or none, of keys and values. `op` is one of

    - construct(items...), also of nothing; insert(list, item, position?), at the end without a position;
      erase(list, position?), the last item without one; at(list, position?), the first one; length(list) as i64;
    - split(x, sizes?) {axis, keepdims}: x cut along axis, into single slices without sizes, into slices of that many
      where sizes is a scalar; concat(list) {axis, new_axis}: the tensors joined or stacked;
    - rows(x, keys): a sequence of maps, one per row of x, whose values are the row.

    Positions are integers and count from the end where they are negative.

    C1: the operation is one of these. C2: it has as many operands.

    ```mlir
    %s = dspark.list "construct"(%x) : (tensor<4xf32>) -> !dspark.sequence<tensor<4xf32>>
    ```
  }];
  let arguments = (ins StrAttr:$op, Variadic<DSpark_ValueOperand>:$inputs, OptionalAttr<DictionaryAttr>:$config);
  let results = (outs DSpark_Value:$output);
  let assemblyFormat = "$op `(` $inputs `)` ($config^)? `:` functional-type($inputs, results) attr-dict";
  let hasVerifier = 1;
}

#endif
