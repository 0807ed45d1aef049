#include "kernels/attention/attention_kernel.h"
#include "kernels/common/families.h"

namespace dspark {
namespace {

// The wide inner loops compute in f32, which also serves the 16-bit types.
bool computesInF32(const KernelCall &call) { return call.in[0].type != DType::F64; }

constexpr Kernel kRows[] = {
    {"attention", "attention_avx512", Isa::Avx512, computesInF32, prepareAttention, runAttentionAvx512},
    {"attention", "attention_avx2", Isa::Avx2, computesInF32, prepareAttention, runAttentionAvx2},
    {"attention", "attention_reference", Isa::Baseline, nullptr, prepareAttention, runAttention},
    {"flex_attention", "flex_attention_avx512", Isa::Avx512, computesInF32, prepareAttention,
     runAttentionAvx512},
    {"flex_attention", "flex_attention_avx2", Isa::Avx2, computesInF32, prepareAttention, runAttentionAvx2},
    {"flex_attention", "flex_attention_reference", Isa::Baseline, nullptr, prepareAttention, runAttention},
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
