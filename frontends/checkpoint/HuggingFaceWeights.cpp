#include "frontends/checkpoint/FloatTensor.h"
#include "frontends/checkpoint/HuggingFaceDecoder.h"
#include "frontends/checkpoint/HuggingFaceNames.h"
#include <algorithm>

namespace dspark::checkpoint {
namespace {

// Of layers beside kLayerParts: several matrices in one, and where norms surround (Gemma 2 and 3) what comes
// first.
constexpr PartName kJoinedParts[] = {
    {"attn_qkv", "self_attn.qkv_proj"},
    {"ffn_up", "mlp.gate_up_proj"},
};
constexpr PartName kOuterNorms[] = {
    {"ffn_norm", "pre_feedforward_layernorm"},
    {"post_attention_norm", "post_attention_layernorm"},
    {"post_ffw_norm", "post_feedforward_layernorm"},
};

constexpr PartName kExperts[] = {
    {"ffn_gate_inp", "mlp.gate"},
    {"ffn_gate_exps", "mlp.experts.*.gate_proj"},
    {"ffn_up_exps", "mlp.experts.*.up_proj"},
    {"ffn_down_exps", "mlp.experts.*.down_proj"},
    {"ffn_gate_inp", "block_sparse_moe.gate"},
    {"ffn_gate_exps", "block_sparse_moe.experts.*.w1"},
    {"ffn_up_exps", "block_sparse_moe.experts.*.w3"},
    {"ffn_down_exps", "block_sparse_moe.experts.*.w2"},
};

constexpr PartName kDeepSeek[] = {
    {"attn_q_a", "self_attn.q_a_proj"},
    {"attn_q_a_norm", "self_attn.q_a_layernorm"},
    {"attn_q_b", "self_attn.q_b_proj"},
    {"attn_kv_a_mqa", "self_attn.kv_a_proj_with_mqa"},
    {"attn_kv_a_norm", "self_attn.kv_a_layernorm"},
    {"attn_kv_b", "self_attn.kv_b_proj"},
    {"ffn_gate_shexp", "mlp.shared_experts.gate_proj"},
    {"ffn_up_shexp", "mlp.shared_experts.up_proj"},
    {"ffn_down_shexp", "mlp.shared_experts.down_proj"},
    {"exp_probs_b", "mlp.gate"},
};
constexpr std::string_view kScoreBias = ".e_score_correction_bias"; // in place of ".bias"

bool isIn(std::span<const PartName> table, std::string_view part) {
  return std::ranges::find(table, part, &PartName::file) != table.end();
}

constexpr std::string_view kExpertsDot = ".experts.";

// "mlp.experts.7.up_proj" -> "mlp.experts.*.up_proj"
std::string withoutExpert(std::string_view part) {
  size_t at = part.find(kExpertsDot);
  size_t begin = at + kExpertsDot.size(), end = at == part.npos ? part.npos : part.find('.', begin);
  bool isNumber = end != part.npos && end > begin &&
                  part.substr(begin, end - begin).find_first_not_of("0123456789") == part.npos;
  return isNumber ? std::string(part.substr(0, begin)) + "*" + std::string(part.substr(end))
                  : std::string(part);
}
std::string ofExpert(std::string name, int64_t expert) {
  size_t star = name.find('*');
  return star == name.npos ? name : name.replace(star, 1, std::to_string(expert));
}

} // namespace

StatusOr<std::unique_ptr<HuggingFaceWeights>>
HuggingFaceWeights::open(std::shared_ptr<const SafeTensorsFolder> folder, const HuggingFaceConfig &config) {
  std::unique_ptr<HuggingFaceWeights> made(new HuggingFaceWeights(std::move(folder), config.tensors));
  DSPARK_RETURN_IF_ERROR(made->findPrefixes());
  DSPARK_RETURN_IF_ERROR(made->checkNorms(int64_t(config.decoder.layers.size())));
  DSPARK_RETURN_IF_ERROR(made->checkLayers());
  return made;
}

Status HuggingFaceWeights::findPrefixes() {
  const char *embedding = "embed_tokens.weight";
  bool isFound = false;
  for (const char *known : {"model.", "language_model.model.", "model.language_model.", ""})
    if (!isFound && folder->find(std::string(known) + embedding)) {
      prefix = known;
      isFound = true;
    }
  if (!isFound)
    return corruptFile("tensor 'model.embed_tokens.weight' is missing");
  for (const char *known : {"lm_head", "language_model.lm_head"})
    if (output.empty() && exists(known))
      output = known;
  if (rules.isTied)
    output.clear();
  else if (output.empty())
    return corruptFile("tensor 'lm_head.weight' is missing, and tie_word_embeddings is false");
  return Status::ok();
}

// The graph leaves out norms that a model does not have; these it must have.
Status HuggingFaceWeights::checkNorms(int64_t layers) const {
  std::vector<std::string> needed = {"output_norm"};
  for (int64_t i = 0; i < layers; ++i) {
    std::string block = "blk." + std::to_string(i) + ".";
    needed.insert(needed.end(), {block + "attn_norm", block + "ffn_norm"});
    if (rules.hasOuterNorms)
      needed.insert(needed.end(), {block + "post_attention_norm", block + "post_ffw_norm"});
    if (rules.isLatent)
      needed.push_back(block + "attn_kv_a_norm");
    if (has(block + "attn_q_a"))
      needed.push_back(block + "attn_q_a_norm");
    if (rules.hasHeadNorms)
      needed.insert(needed.end(), {block + "attn_q_norm", block + "attn_k_norm"});
  }
  for (const std::string &name : needed)
    if (!has(name))
      return corruptFile("tensor '" + fileName(name) + ".weight' is missing");
  return Status::ok();
}

// A tensor that nothing reads would mean a model that computes something else than the file's.
Status HuggingFaceWeights::checkLayers() const {
  std::string layers = prefix + "layers.";
  for (const auto &[name, tensor] : folder->tensors()) {
    if (!name.starts_with(layers))
      continue;
    auto [layer, part] = layerPart(std::string_view(name).substr(layers.size()));
    if (layer >= rules.layers && layer < rules.layers + rules.predictLayers)
      continue;
    size_t dot = part.rfind('.');
    std::string_view ending = dot == part.npos ? "" : part.substr(dot + 1), base = part.substr(0, dot);
    bool isKnown = (ending == "weight" || ending == "bias" || isQuantizationPart(ending)) &&
                   (isIn(kLayerParts, base) || isIn(kJoinedParts, base) ||
                    (rules.hasOuterNorms && isIn(kOuterNorms, base)) ||
                    (rules.hasExperts && isIn(kExperts, withoutExpert(base))) ||
                    (rules.isLatent && isIn(kDeepSeek, base)));
    isKnown |= rules.isLatent && base == "mlp.gate" && kScoreBias.substr(1) == ending;
    bool isScaleOfCache = base == "self_attn" && (ending == "k_scale" || ending == "v_scale");
    if (layer < 0 || !(isKnown || isScaleOfCache || part == "self_attn.rotary_emb.inv_freq"))
      return {Code::Unsupported, "tensor '" + name + "' has no part in this architecture"};
  }
  return Status::ok();
}

bool HuggingFaceWeights::exists(std::string file) const {
  file = ofExpert(std::move(file), 0);
  return folder->find(file + ".weight") || folder->find(file + ".qweight") ||
         folder->find(file + ".weight_packed");
}

std::string HuggingFaceWeights::fileName(std::string_view name) const {
  if (const std::string_view file = fileOf(kModelParts, name); !file.empty())
    return prefix + std::string(file);
  if (name == "output")
    return output;
  if (!name.starts_with("blk."))
    return "";
  auto [layer, part] = layerPart(name.substr(4));
  std::string block = prefix + "layers." + std::to_string(layer) + ".", found;
  auto take = [&](std::span<const PartName> table) {
    for (const PartName &row : table)
      if (row.ours == part && (found.empty() || !exists(found)))
        found = block + std::string(row.file);
  };
  if (rules.hasOuterNorms)
    take(kOuterNorms);
  if (found.empty()) {
    take(kLayerParts);
    take(kJoinedParts);
  }
  if (found.empty() && rules.hasExperts)
    take(kExperts);
  if (found.empty() && rules.isLatent)
    take(kDeepSeek);
  return found;
}

std::string HuggingFaceWeights::vectorName(std::string_view name) const {
  if (!name.ends_with(".bias"))
    return fileName(name) + ".weight";
  name.remove_suffix(5);
  return fileName(name) + (name.ends_with(".exp_probs_b") ? std::string(kScoreBias) : ".bias");
}

bool HuggingFaceWeights::has(std::string_view name) const {
  if (name.ends_with(".bias"))
    return folder->find(vectorName(name)) != nullptr;
  std::string file = fileName(name);
  return !file.empty() && exists(file);
}

StatusOr<Matrix> HuggingFaceWeights::matrix(std::string_view name, int64_t n, int64_t k) const {
  return matrixNamed(fileName(name), n, k);
}

StatusOr<std::vector<Matrix>> HuggingFaceWeights::experts(std::string_view name, int64_t count, int64_t n,
                                                          int64_t k) const {
  std::vector<Matrix> each;
  for (int64_t i = 0; i < count; ++i) {
    DSPARK_ASSIGN_OR_RETURN(each.emplace_back(), matrixNamed(ofExpert(fileName(name), i), n, k));
    if (each.back().layout != each.front().layout && (each.back().isBlocks() || each.front().isBlocks()))
      return Status(Code::Unsupported, "tensor '" + fileName(name) + "': experts have different layouts");
  }
  return each;
}

StatusOr<Matrix> HuggingFaceWeights::matrixNamed(std::string file, int64_t n, int64_t k) const {
  QuantizedTensor place{folder, rules.quantization, std::move(file), n, k};
  if (isQuantized(place))
    return quantizedMatrix(place);
  return floatMatrix(folder, place.name + ".weight", n, k);
}

StatusOr<std::vector<float>> HuggingFaceWeights::vector(std::string_view name, int64_t n) const {
  DSPARK_ASSIGN_OR_RETURN(std::vector<float> values, floatVector(*folder, vectorName(name), n));
  if (rules.addsOneToNorms && !name.ends_with(".bias"))
    for (float &value : values)
      value += 1;
  return values;
}

} // namespace dspark::checkpoint
