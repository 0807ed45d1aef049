// Attention and its linear relatives, rotary embedding, cache updates.
#include "frontends/onnx/GraphImporter.h"
#include <cmath>

namespace dspark::onnx {
namespace {

/// One of FlexAttention's modifier graphs, which map a tensor to one of the same shape, put in line.
mlir::Value modify(Node &n, std::string_view name, mlir::Value x) {
  const auto *graph = n.attribute(name);
  if (!graph || n.failed())
    return x;
  auto outputs = n.importer().body(n, graph->g(), *n.importer().builder().getInsertionBlock(), {x});
  if (outputs && outputs->size() != 1)
    n.invalid(std::string(name) + " makes " + std::to_string(outputs->size()) + " values; expected 1");
  return outputs && !n.failed() ? outputs->front() : mlir::Value();
}

/// dims[from, to) of x as a list.
mlir::Value dimsOf(Node &n, mlir::Value x, int64_t from, int64_t to) {
  return n.one("shape", {x}, {n.attr("start", from), n.attr("end", to)});
}
mlir::Value reshape(Node &n, mlir::Value x, const Values &dims) {
  return n.one("reshape", {x, n.one("concat", dims, {n.attr("axis", int64_t(0))})});
}

/// Heads that share keys: [B,Hq,L,X] as [B,Hkv,Hq/Hkv*L,X], whose rows meet one key's head, and back.
struct SharedHeads {
  mlir::Value q, k;
  bool isNeeded; // false where there are as many of both

  mlir::Value grouped(Node &n, mlir::Value x) const {
    if (!isNeeded)
      return x;
    mlir::Value heads = dimsOf(n, k, 1, 2);
    mlir::Value rows = n.binary("div", n.binary("mul", dimsOf(n, q, 1, 2), dimsOf(n, q, 2, 3)), heads);
    return reshape(n, x, {dimsOf(n, q, 0, 1), heads, rows, dimsOf(n, x, 3, 4)});
  }
  mlir::Value single(Node &n, mlir::Value x) const {
    return isNeeded ? reshape(n, x, {dimsOf(n, q, 0, 3), dimsOf(n, x, 3, 4)}) : x;
  }
};

/// 1 / sqrt(head size) unless the node says otherwise.
mlir::Value attentionScale(Node &n, const Dim &headSize) {
  if (n.hasAttribute("scale") || headSize.isConst())
    return n.scalar(DType::F32,
                    n.f("scale", 1 / std::sqrt(double(headSize.isConst() ? headSize.value() : 1))));
  return n.unary("rsqrt", n.cast(dimsOf(n, n.in(0), 3, 4), DType::F32));
}

/// Without modifiers a kernel of its own; with them softmax(score_mod(Q @ K^T * scale)) @ V in pieces.
void buildFlexAttention(Node &n) {
  if (!n.hasAttribute("score_mod") && !n.hasAttribute("prob_mod"))
    return n.out(0, n.one("flex_attention", n.inputs(), n.pick("scale softmax_precision")));
  TensorInfo q = n.info(n.in(0)), k = n.info(n.in(1));
  if (q.type != DType::F32 || n.i("softmax_precision", 1) != int64_t(DType::F32))
    return n.unsupported("FlexAttention with modifiers is supported in f32 only");
  if (q.rank() != 4 || k.rank() != 4)
    return n.unsupported("FlexAttention with modifiers needs operands of rank 4");
  if (q.dims[1].isConst() && k.dims[1].isConst() &&
      (k.dims[1].value() == 0 || q.dims[1].value() % k.dims[1].value() != 0))
    return n.invalid(q.dims[1].str() + " heads of queries cannot share " + k.dims[1].str() +
                     " heads of keys");
  SharedHeads heads = {n.in(0), n.in(1), !q.dims[1].provablyEqual(k.dims[1])};
  mlir::Value scores =
      heads.single(n, n.one("matmul", {heads.grouped(n, n.in(0)), n.in(1)}, {n.attr("trans_b", int64_t(1))}));
  scores = modify(n, "score_mod", n.binary("mul", scores, attentionScale(n, q.dims[3])));
  if (!scores)
    return;
  mlir::Value probs = modify(n, "prob_mod", n.one("softmax", {scores}, {n.attr("axis", int64_t(-1))}));
  if (probs)
    n.out(0, heads.single(n, n.one("matmul", {heads.grouped(n, probs), n.in(2)})));
}

constexpr OpRow rows[] = {
    direct("Attention", 23, {3, 7, 1, 4}, "attention",
           "is_causal:i kv_num_heads:i q_num_heads:i qk_matmul_output_mode:i scale:f softcap:f "
           "softmax_precision:i "
           "left_window_size:i right_window_size:i"),
    direct("RotaryEmbedding", 23, {3, 4}, "rotary_embedding",
           "interleaved:i num_heads:i rotary_embedding_dim:i"),
    direct("LinearAttention", 27, {3, 6, 2, 2}, "linear_attention",
           "chunk_size:i kv_num_heads:i! q_num_heads:i! scale:f update_rule:s"),
    direct("CausalConvWithState", 27, {2, 4, 2, 2}, "causal_conv_with_state", "activation:s"),
    direct("SwiGLU", 28, {2, 2}, "swiglu", "alpha:f"),
    in("ai.onnx.preview", built("FlexAttention", 1, {3, 3}, buildFlexAttention,
                                "scale:f softmax_precision:i score_mod:g prob_mod:g")),
    direct("TensorScatter", 24, {2, 3}, "tensor_scatter", "axis:i mode:s"),
};

} // namespace

OpRows attentionRows() { return rows; }

} // namespace dspark::onnx
