#include "kernels/attention/attention_kernel.h"
#include "kernels/common/families.h"

namespace dspark {
namespace {

#define DSPARK_ATTENTION(op)                                                                                 \
  {op, op "_avx512", Isa::Avx512, acceptsAttention, prepareAttentionWide, runAttentionAvx512},               \
      {op, op "_avx2", Isa::Avx2, acceptsAttention, prepareAttention, runAttentionAvx2},                     \
      {op, op "_baseline", Isa::Baseline, acceptsAttention, prepareAttention, runAttentionBaseline}, {       \
    op, op "_reference", Isa::Baseline, nullptr, prepareAttentionReference, runAttentionReference            \
  }

constexpr Kernel kRows[] = {
    {"attention", "attention_bf16_avx512", Isa::Avx512, acceptsAttentionBf16, prepareAttentionWide,
     runAttentionBf16},
    DSPARK_ATTENTION("attention"),
    DSPARK_ATTENTION("flex_attention"),
    {"paged_attention", "paged_attention_avx512", Isa::Avx512, nullptr, preparePagedAttention,
     runPagedAttentionAvx512},
    {"paged_attention", "paged_attention_avx2", Isa::Avx2, nullptr, preparePagedAttention,
     runPagedAttentionAvx2},
    {"paged_attention", "paged_attention_baseline", Isa::Baseline, nullptr, preparePagedAttention,
     runPagedAttentionBaseline},
    {"paged_attention", "paged_attention_reference", Isa::Baseline, nullptr, preparePagedReference,
     runPagedReference},
    {"paged_cache_write", "paged_cache_write_reference", Isa::Baseline, nullptr, preparePagedCacheWrite,
     runPagedCacheWrite},
    {"rotary_embedding", "rotary_embedding_half_avx512", Isa::Avx512, acceptsRotaryHalves,
     prepareRotaryEmbedding, runRotaryHalvesAvx512},
    {"rotary_embedding", "rotary_embedding_half_avx2", Isa::Avx2, acceptsRotaryHalves, prepareRotaryEmbedding,
     runRotaryHalvesAvx2},
    {"rotary_embedding", "rotary_embedding_reference", Isa::Baseline, nullptr, prepareRotaryEmbedding,
     runRotaryEmbedding},
    {"linear_attention", "linear_attention_reference", Isa::Baseline, nullptr, prepareLinearAttention,
     runLinearAttention},
    {"causal_conv_with_state", "causal_conv_reference", Isa::Baseline, nullptr, prepareCausalConv,
     runCausalConv},
    {"swiglu", "swiglu_reference", Isa::Baseline, nullptr, prepareSwiglu, runSwiglu},
};

} // namespace

std::span<const Kernel> attentionKernels() { return kRows; }

} // namespace dspark
