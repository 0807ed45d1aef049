// Tensor names of Hugging Face's Llama-like models beside ours (DecoderWeights.h), without ".weight" and
// ".bias".
#pragma once
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

namespace dspark::checkpoint {

struct PartName {
  std::string_view ours, file;
};

inline constexpr PartName kModelParts[] = {
    {"token_embd", "embed_tokens"},
    {"output_norm", "norm"},
};
/// Behind "layers.<i>.".
inline constexpr PartName kLayerParts[] = {
    {"attn_norm", "input_layernorm"},    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},      {"attn_v", "self_attn.v_proj"},
    {"attn_q_norm", "self_attn.q_norm"}, {"attn_k_norm", "self_attn.k_norm"},
    {"attn_output", "self_attn.o_proj"}, {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},       {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
};

/// The file's name; "" if the table has none.
inline std::string_view fileOf(std::span<const PartName> table, std::string_view ours) {
  const auto row = std::ranges::find(table, ours, &PartName::ours);
  return row == table.end() ? std::string_view() : row->file;
}

/// "<layer>.<part>" -> its two halves; the layer is -1 if it is no number.
inline std::pair<int64_t, std::string_view> layerPart(std::string_view name) {
  int64_t layer = -1;
  auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), layer);
  const auto digits = size_t(end - name.data());
  if (error != std::errc() || digits >= name.size() || name[digits] != '.')
    return {-1, name};
  return {layer, name.substr(digits + 1)};
}

} // namespace dspark::checkpoint
