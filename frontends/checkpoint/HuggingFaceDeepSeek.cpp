#include "frontends/checkpoint/HuggingFaceDeepSeek.h"
#include <cmath>

namespace dspark::checkpoint {
namespace {

constexpr int64_t kLargestHead = 65536;

void readAttention(const JsonFields &fields, DeepSeek version, DecoderConfig &config) {
  LatentAttention &latent = config.latent;
  latent.rank = fields.size("kv_lora_rank", kLargestSize, 512);
  latent.queryRank = fields.isNull("q_lora_rank") ? 0 : fields.size("q_lora_rank", kLargestSize, 1536);
  latent.plain = fields.size("qk_nope_head_dim", kLargestHead, 128);
  latent.rotated = fields.size("qk_rope_head_dim", kLargestHead, 64);
  latent.value = fields.size("v_head_dim", kLargestHead, 128);
  if (config.kvHeads != config.heads)
    fields.fail("num_key_value_heads", std::to_string(config.kvHeads),
                std::to_string(config.heads) + ", as many as query heads");
  config.kvHeads = 1;
  config.headSize = latent.rotated;
  config.attentionScale = 1 / std::sqrt(double(latent.plain + latent.rotated));
  config.interleavedRope = version == DeepSeek::V2 || fields.boolean("rope_interleave", true);
}

void expect(const JsonFields &fields, const char *key, const char *only) {
  if (std::string found = fields.string(key, only); found != only)
    fields.refuse(std::string(key) + " is '" + found.substr(0, 80) + "', expected " + only);
}

void readGroups(const JsonFields &fields, ExpertSettings &experts, std::optional<int64_t> groups,
                std::optional<int64_t> used) {
  experts.groups = fields.size("n_group", experts.count, groups);
  experts.usedGroups = fields.size("topk_group", experts.groups, used);
}

void readRouter(const JsonFields &fields, DeepSeek version, ExpertSettings &experts) {
  if (version == DeepSeek::V3) {
    expect(fields, "scoring_func", "sigmoid");
    expect(fields, "topk_method", "noaux_tc");
    experts.isSigmoid = true;
    experts.normalizes = fields.boolean("norm_topk_prob", true);
    experts.scale = fields.positive("routed_scaling_factor", 2.5);
    experts.bestOfGroup = 2;
    return readGroups(fields, experts, 8, 4);
  }
  expect(fields, "scoring_func", "softmax");
  if (fields.boolean("norm_topk_prob", false))
    fields.refuse("norm_topk_prob is true, which transformers ignores and the model's own code does not");
  experts.normalizes = false;
  experts.scale = fields.positive("routed_scaling_factor", 1);
  std::string method = fields.string("topk_method", "greedy");
  if (method == "group_limited_greedy")
    readGroups(fields, experts, {}, {});
  else if (method != "greedy")
    fields.refuse("topk_method is '" + method.substr(0, 80) + "', expected greedy or group_limited_greedy");
}

void readExperts(const JsonFields &fields, DeepSeek version, ExpertSettings &experts) {
  bool isV3 = version == DeepSeek::V3;
  experts.count = fields.size("n_routed_experts", kMostExperts, isV3 ? 256 : 64);
  experts.used =
      fields.size("num_experts_per_tok", experts.count, isV3 ? std::optional<int64_t>(8) : std::nullopt);
  experts.feedForward = fields.size("moe_intermediate_size", kLargestSize, isV3 ? 2048 : 1407);
  experts.shared = experts.feedForward * fields.size("n_shared_experts", 1024, isV3 ? 1 : 2);
  readRouter(fields, version, experts);
  if (std::string wrong = groupTrouble(experts); !wrong.empty())
    fields.refuse(wrong);
}

} // namespace

void readDeepSeek(const JsonFields &fields, DeepSeek version, DecoderConfig &config) {
  readAttention(fields, version, config);
  readExperts(fields, version, config.experts);
}

} // namespace dspark::checkpoint
