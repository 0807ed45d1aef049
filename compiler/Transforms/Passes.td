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

def FoldConstantsPass : Pass<"dspark-fold-constants", "::mlir::func::FuncOp"> {
  let summary = "Makes weights of movement and elementwise operations on weights";
  let description = [{
    op(weights and constants) -> a derived weight, which the operator's own kernel computes when the plan is written. Only
    where the results have no more bytes than the operands, are filters of f32 convolutions, or are full of one number
    (constant_of_shape).
  }];
  let constructor = "::dspark::createFoldConstantsPass()";
}

def FoldAffinePass : Pass<"dspark-fold-affine", "::mlir::func::FuncOp"> {
  let summary = "Folds batch norms and constant scales and shifts into the convolution before them";
  let description = [{
    batch_norm(x) with constant parameters becomes x * scale + shift per channel; then mul(conv(x, w, b), s) becomes
    conv(x, w*s, b*s) and add(conv(x, w, b), t) becomes conv(x, w, b+t) where s and t are constant per output channel.
    Weights change by recipe: no byte is read here.
  }];
  let constructor = "::dspark::createFoldAffinePass()";
}

def LiftReshapesPass : Pass<"dspark-lift-reshapes", "::mlir::func::FuncOp"> {
  let summary = "Takes a product out of the reshapes that flatten its rows";
  let description = [{
    reshape(matmul(reshape(x), w)) -> matmul(x, w) where the reshapes only join the leading axes and part them again.
  }];
}

def RaiseActivationsPass : Pass<"dspark-raise-activations", "::mlir::func::FuncOp"> {
  let summary = "Recognises activations and norms that exporters spell out";
  let description = [{
    x * clip(x + 3, 0, 6) / 6 -> hard_swish; x * sigmoid(x) -> silu; clip(x + 3, 0, 6) / 6 -> hard_sigmoid;
    0.5 * x * (1 + erf(x / sqrt(2))) -> gelu; 0.5 * x * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))) -> gelu_tanh;
    (x - mean(x)) / sqrt(mean((x - mean(x))^2) + eps) * scale + bias over trailing axes -> layer_norm.
  }];
}

def FuseAttentionPass : Pass<"dspark-fuse-attention", "::mlir::func::FuncOp"> {
  let summary = "Recognises attention that exporters spell out in matrix products";
  let description = [{
    softmax(scale * (Q @ transpose(K)) + mask) @ V -> attention(Q, K, V, mask), where scores and probabilities have no
    other use. Heads that are split from a last axis and brought forward by a transpose stay where they are. where(c, S,
    number) is a mask too. Rows whose scores are all -inf stay NaN, or 0 where the graph says where(isnan(P), 0, P).
  }];
}

def FuseEpiloguesPass : Pass<"dspark-fuse-epilogues", "::mlir::func::FuncOp"> {
  let summary = "Fuses bias, residual and activation into the contraction before them";
  let description = [{
    For matmul, matmul_dequant, conv and conv_transpose whose result has one use: add of a constant per output column
    becomes the bias, add of a tensor of the result's shape the residual, and a unary or clip the activation, in the
    order the kernels apply them: act(product + bias + residual).
  }];
}

def FuseExpandDepthwisePass : Pass<"dspark-fuse-expand-depthwise", "::mlir::func::FuncOp"> {
  let summary = "Fuses a pointwise convolution into the depthwise one that reads it";
  let description = [{
    conv 1x1 -> depthwise conv, both packed and channels last, becomes expand_depthwise where nothing else reads what lies
    between and it would not fit the L2 cache (256 KiB an image), or its size is not known.
  }];
}

def FuseSharedInputPass : Pass<"dspark-fuse-shared-input", "::mlir::func::FuncOp"> {
  let summary = "Computes products of one input by weights of few bits in one step";
  let description = [{
    matmul(x, w1, b1?), matmul(x, w2, b2?) ... -> multi_matmul(x, w1, b1, w2, b2 ...) where the weights have one packed layout of
    few bits and the products equal attributes and no residual, as queries, keys and values of attention do.
  }];
}

def KeepWeightsQuantizedPass : Pass<"dspark-keep-weights-quantized", "::mlir::func::FuncOp"> {
  let summary = "Keeps int8 weights int8 where a model spells out their dequantisation";
  let description = [{
    With w = cast(int8 weight) * scale or dequantize_linear(int8 weight, scale, zero): matmul(a, w) -> matmul_dequant(a, weight, scale) where scale is one number or one
    per column, and gather(w, i) -> cast(gather(weight, i)) * scale where scale is one number or one per row.
  }];
}

def QuantizeContractionsPass : Pass<"dspark-quantize-contractions", "::mlir::func::FuncOp"> {
  let summary = "Puts quantise and dequantise pairs around contractions that are chosen to run on bytes";
  let description = [{
    conv(x, w) -> conv(dequantize(quantize(x)), dequantize(w8)) with weights of 8 bits and a scale per output channel, and
    the same pair wherever bytes can flow on to the next such contraction, so that the fusions of quantised models keep
    them bytes. The choice and the ranges come from a search (PrecisionChoices.h), which other modes of the pass serve:
    `observe` makes an output of every value that may become bytes, `compare` computes every contraction in both ways.
    Made without a search (dspark-opt), it takes `mode` and gives every value the range [-1, 1].
  }];
  let constructor = "::dspark::createQuantizeContractionsPass()";
  let options = [Option<"mode", "mode", "std::string", /*default=*/"\"apply\"", "observe, compare or apply">];
}

def SinkDequantizePass : Pass<"dspark-sink-dequantize", "::mlir::func::FuncOp"> {
  let summary = "Moves dequantisation below operations that only move elements";
  let description = [{
    op(dequantize(x)) -> dequantize(op(x)) for reshape, transpose, slice, gather, max pooling, nearest resizing and the
    like with one scale; concat where all operands have the same.
  }];
}

def FuseQuantizedContractionsPass : Pass<"dspark-fuse-quantized-contractions", "::mlir::func::FuncOp"> {
  let summary = "Turns contractions of dequantised operands into products of bytes";
  let description = [{
    Matmul and conv of dequantised operands become qlinear_matmul and qlinear_conv with the model's scales, bias, relu or
    clip and the quantize_linear behind them included; matmul_integer and conv_integer with their scaling the same with
    f32 result.
  }];
  let constructor = "::dspark::createFuseQuantizedContractionsPass()";
}

def FuseQuantizedPass : Pass<"dspark-fuse-quantized", "::mlir::func::FuncOp"> {
  let summary = "Turns what is computed between dequantize_linear and quantize_linear into operations on bytes";
  let description = [{
    add, sub and mul become qlinear_binary, averages qlinear_pool, elementwise functions of one tensor a lookup, concat of
    several scales a concat of lookups. What is left of quantised constants is dequantised in the plan.
  }];
  let constructor = "::dspark::createFuseQuantizedPass()";
}

def ChannelsLastPass : Pass<"dspark-channels-last", "::mlir::func::FuncOp"> {
  let summary = "Gives convolutions, pooling and resizing the layout nhwc and moves transposes out of the way";
  let description = [{
    Each such operation is wrapped in transposes; then transposes are pushed down through elementwise operations,
    reductions, concatenations, slices and pads until they cancel.
  }];
  let constructor = "::dspark::createChannelsLastPass()";
}

def FuseRegionsPass : Pass<"dspark-fuse-regions", "::mlir::func::FuncOp"> {
  let summary = "Groups elementwise operations and reductions of rows into dspark.fused regions";
  let description = [{
    A region grows from an operation to its producers, so that each intermediate tensor disappears, or is written once
    beside the result where something after the region needs it. Softmax, layer norm and reductions join where they work
    on the last axes of the region's full shape and have a neighbour in it; alone they keep their own kernels. At most 24
    operands and results and 256 instructions.
  }];
}

def PackWeightsPass : Pass<"dspark-pack-weights", "::mlir::func::FuncOp"> {
  let summary = "Gives constant operands of contractions the layout their kernels read";
  let description = [{
    matmul b of [K, N] and matmul_dequant b -> panel16, or f16 or bf16 where b is of that type; conv weights in nhwc -> panel16, or depthwise where every group
    has one input and one output channel. Packing runs when the plan is written.
  }];
  let constructor = "::dspark::createPackWeightsPass()";
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
