// Attributes and shapes of the attention family, read once by shape functions (on dims) and kernels (on
// numbers).
#pragma once
#include "kernels/common/shape.h"

namespace dspark {

InferStatus inferAttention(InferContext &ctx);
InferStatus inferFlexAttention(InferContext &ctx);
InferStatus inferPagedAttention(InferContext &ctx);
InferStatus inferPagedCacheWrite(InferContext &ctx);
InferStatus inferRotaryEmbedding(InferContext &ctx);
InferStatus inferLinearAttention(InferContext &ctx);
InferStatus inferCausalConv(InferContext &ctx);
InferStatus inferSwiglu(InferContext &ctx);

/// What qk_matmul_output of attention holds.
enum class ScoreOutput : int8_t { Raw, Softcapped, Biased, Probabilities };

/// linear_attention's update_rule.
struct UpdateRule {
  bool known, gated, delta;
};
inline UpdateRule updateRule(Attrs attrs) {
  std::string_view name = attrs.s("update_rule", "gated_delta");
  bool gated = name == "gated" || name == "gated_delta", delta = name == "delta" || name == "gated_delta";
  return {gated || delta || name == "linear", gated, delta};
}

} // namespace dspark
