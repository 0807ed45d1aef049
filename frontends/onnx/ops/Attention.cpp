// Attention and its linear relatives, rotary embedding, cache updates.
#include "frontends/onnx/Node.h"

namespace dspark::onnx {
namespace {

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
    direct("TensorScatter", 24, {2, 3}, "tensor_scatter", "axis:i mode:s"),
};

} // namespace

OpRows attentionRows() { return rows; }

} // namespace dspark::onnx
