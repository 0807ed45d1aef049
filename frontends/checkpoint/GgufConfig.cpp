// GGUF metadata (<architecture>.<key>) -> DecoderConfig. What the metadata leaves out because llama.cpp's
// code knows it stands in the table of architectures.
#include "frontends/checkpoint/GgufDecoder.h"
#include "frontends/checkpoint/Rope.h"
#include <cmath>

namespace dspark::checkpoint {
namespace {

enum class Windows {
  None,
  All,         // every layer, where the file has one
  Alternating, // every second, from the first
  FiveOfSix,   // every sixth layer sees all
};

struct Architecture {
  std::string_view name;
  bool interleavedRope = false;
  std::string_view activation = "silu";
  Windows windows = Windows::None;
  double localRopeBase = 0;     // of layers with a window; 0: the same
  bool scalesEmbedding = false; // by sqrt(hidden)
  bool isLatent = false;        // DeepSeek-V2's attention and routers
};

constexpr Architecture kArchitectures[] = {
    {.name = "llama", .interleavedRope = true}, // Mistral and SmolLM too
    {.name = "qwen2"},
    {.name = "qwen3"},
    {.name = "qwen3moe"},
    {.name = "deepseek2", .interleavedRope = true, .isLatent = true}, // V3 too
    {.name = "phi3", .windows = Windows::All},
    {.name = "gemma2", .activation = "gelu_tanh", .windows = Windows::Alternating, .scalesEmbedding = true},
    {.name = "gemma3",
     .activation = "gelu_tanh",
     .windows = Windows::FiveOfSix,
     .localRopeBase = 1e4,
     .scalesEmbedding = true},
};

class Reader {
public:
  explicit Reader(const GgufFile &file) : file(file) {}

  StatusOr<DecoderConfig> read() {
    const GgufValue *named = file.find("general.architecture");
    config.architecture = named ? std::string(named->string().value_or("")) : "";
    for (const Architecture &known : kArchitectures)
      if (known.name == config.architecture)
        architecture = &known;
    if (!architecture)
      return unknownArchitecture();
    readSizes();
    readVocabulary();
    if (status.isOk() && config.heads % config.kvHeads != 0)
      fail("attention.head_count", config.heads,
           "a multiple of the " + std::to_string(config.kvHeads) + " key heads");
    if (status.isOk())
      readLayers();
    if (!status.isOk())
      return status;
    return std::move(config);
  }

private:
  Status unknownArchitecture() const {
    std::string known;
    for (const Architecture &row : kArchitectures)
      known += (known.empty() ? "" : ", ") + std::string(row.name);
    return {Code::Unsupported,
            "general.architecture is '" + config.architecture + "', expected one of " + known};
  }

  void fail(std::string_view key, std::string found, const std::string &expected) {
    if (status.isOk())
      status = corruptFile(config.architecture + "." + std::string(key) + " is " + found + ", expected " +
                           expected);
  }
  void fail(std::string_view key, int64_t found, const std::string &expected) {
    fail(key, std::to_string(found), expected);
  }

  const GgufValue *find(std::string_view key) const {
    return file.find(config.architecture + "." + std::string(key));
  }

  // Required unless `otherwise` is given.
  int64_t size(std::string_view key, int64_t most, std::optional<int64_t> otherwise = {}) {
    const GgufValue *value = find(key);
    std::optional<int64_t> found = value ? value->integer() : otherwise;
    if (!found || *found < 1 || *found > most)
      fail(key, found ? std::to_string(*found) : "missing", "1 to " + std::to_string(most));
    return found.value_or(1);
  }
  int64_t sizeOrZero(std::string_view key, int64_t most) {
    const GgufValue *value = find(key);
    return value && value->integer() != 0 ? size(key, most) : 0;
  }
  double number(std::string_view key, double otherwise) {
    const GgufValue *value = find(key);
    double found = value ? value->number().value_or(NAN) : otherwise;
    if (!std::isfinite(found))
      fail(key, "no finite number", "a number");
    return found;
  }
  double positive(std::string_view key, double otherwise) {
    double found = number(key, otherwise);
    if (status.isOk() && !(found > 0))
      fail(key, std::to_string(found), "a number above 0");
    return found;
  }

  void readSizes() {
    config.hidden = size("embedding_length", kLargestSize);
    config.contextLength = size("context_length", kLongestContext);
    config.heads = size("attention.head_count", kMostHeads);
    config.kvHeads = size("attention.head_count_kv", kMostHeads, config.heads);
    readExperts();
    config.layers.resize(size_t(size("block_count", kMostLayers)));
    config.normEpsilon = positive("attention.layer_norm_rms_epsilon", 1e-5);
    architecture->isLatent ? readLatent() : readHeads();
    config.attentionSoftcap = number("attn_logit_softcapping", 0);
    config.logitSoftcap = number("final_logit_softcapping", 0);
    config.activation = architecture->activation;
    config.interleavedRope = architecture->interleavedRope;
    config.embeddingScale = architecture->scalesEmbedding ? std::sqrt(double(config.hidden)) : 1;
  }

  void readHeads() {
    config.headSize = size("attention.key_length", 65536, std::max<int64_t>(1, config.hidden / config.heads));
    if (int64_t width = size("attention.value_length", 65536, config.headSize); width != config.headSize)
      fail("attention.value_length", width, std::to_string(config.headSize) + " as attention.key_length");
    config.attentionScale = 1 / std::sqrt(double(config.headSize));
  }

  // Newer files have the sizes of what is cached as key_length and value_length, those of heads in ..._mla.
  void readLatent() {
    LatentAttention &latent = config.latent;
    auto headLength = [&](const std::string &key) {
      return size(find(key + "_mla") ? key + "_mla" : key, 65536);
    };
    int64_t keys = headLength("attention.key_length");
    latent.rank = size("attention.kv_lora_rank", kLargestSize);
    latent.queryRank = sizeOrZero("attention.q_lora_rank", kLargestSize);
    latent.rotated = size("rope.dimension_count", 65536);
    latent.plain = keys - latent.rotated;
    latent.value = headLength("attention.value_length");
    latent.normEpsilon = config.normEpsilon;
    if (latent.plain < 1)
      fail("rope.dimension_count", latent.rotated, "less than the " + std::to_string(keys) + " of a key");
    config.kvHeads = 1;
    config.headSize = latent.rotated;
    config.attentionScale = 1 / std::sqrt(double(keys));
    if (int64_t further = sizeOrZero("nextn_predict_layers", kMostLayers);
        further < int64_t(config.layers.size()))
      config.layers.resize(config.layers.size() - size_t(further)); // they predict further tokens
  }

  // In metadata's words 2 is sigmoid. A group's score is that of its two best experts where scores are
  // sigmoids (V3), of its best one else (V2).
  void readRouter(ExpertSettings &experts) {
    experts.isSigmoid = sizeOrZero("expert_gating_func", 2) == 2;
    experts.bestOfGroup = experts.isSigmoid ? 2 : 1;
    const GgufValue *norm = find("expert_weights_norm");
    experts.normalizes = norm && norm->boolean().value_or(false);
    double scale = number("expert_weights_scale", 0); // 0: none
    experts.scale = scale != 0 ? scale : 1;
    experts.groups = size("expert_group_count", experts.count, 1);
    experts.usedGroups = size("expert_group_used_count", experts.groups, experts.groups);
    experts.shared = experts.feedForward * sizeOrZero("expert_shared_count", 1024);
    if (std::string wrong = groupTrouble(experts); !wrong.empty() && status.isOk())
      status = corruptFile(config.architecture + ".expert_group_count: " + wrong);
  }

  void readExperts() {
    ExpertSettings &experts = config.experts;
    const GgufValue *count = find("expert_count");
    bool isMixture = count && count->integer() != 0;
    if (isMixture) {
      experts.count = size("expert_count", kMostExperts);
      experts.used = size("expert_used_count", experts.count);
      experts.feedForward =
          size("expert_feed_forward_length", kLargestSize,
               find("feed_forward_length") ? std::optional(size("feed_forward_length", kLargestSize))
                                           : std::nullopt);
      if (architecture->isLatent)
        readRouter(experts);
    }
    config.feedForward = size("feed_forward_length", kLargestSize,
                              isMixture ? std::optional(experts.feedForward) : std::nullopt);
  }

  void readVocabulary() {
    const GgufTensor *embedding = file.tensor("token_embd.weight");
    if (embedding && embedding->dims.size() == 2 && embedding->dims[0] >= 1 &&
        embedding->dims[0] <= INT32_MAX)
      config.vocabulary = embedding->dims[0];
    else if (status.isOk())
      status = corruptFile("tensor 'token_embd.weight' is missing or no matrix");
  }

  void readLayers() {
    const GgufValue *given = find("attention.sliding_window");
    int64_t window = given ? given->integer().value_or(0) : 0;
    double base = positive("rope.freq_base", 10000);
    config.ropes.push_back(rope(base));
    bool hasLocalRope = architecture->localRopeBase > 0 && window > 0;
    if (hasLocalRope)
      config.ropes.push_back(plainRope(architecture->localRopeBase, rotated()));
    for (size_t i = 0; i < config.layers.size() && window > 0; ++i) {
      bool isLocal = architecture->windows == Windows::All ||
                     (architecture->windows == Windows::Alternating && i % 2 == 0) ||
                     (architecture->windows == Windows::FiveOfSix && i % 6 != 5);
      config.layers[i] = {isLocal ? window : -1, isLocal && hasLocalRope ? 1 : 0};
    }
  }

  int64_t rotated() {
    int64_t dims = size("rope.dimension_count", 65536, config.headSize);
    if (dims > config.headSize || dims % 2 != 0)
      fail("rope.dimension_count", dims,
           "an even number up to the head size of " + std::to_string(config.headSize));
    return std::min(dims, config.headSize);
  }

  RopeTable rope(double base) {
    const GgufValue *kindValue = find("rope.scaling.type");
    std::string kind(kindValue ? kindValue->string().value_or("") : "none");
    double factor = positive("rope.scaling.factor", 1);
    if (kind == "yarn") {
      YarnSettings yarn;
      yarn.factor = factor;
      yarn.originalContext =
          size("rope.scaling.original_context_length", kLongestContext, config.contextLength);
      if (double multiplier = number("rope.scaling.yarn_log_multiplier", 0);
          config.latent.rank > 0 && multiplier != 0) {
        double scale = factor > 1 ? 1 + multiplier * std::log(factor) : 1;
        config.attentionScale *= scale * scale;
        yarn.magnitude = 1; // scores have it
      }
      return yarnRope(base, rotated(), yarn);
    }
    if (kind != "none" && kind != "linear" && kind != "longrope") {
      if (status.isOk())
        status = {Code::Unsupported, config.architecture + ".rope.scaling.type is '" + kind +
                                         "', expected none, linear, yarn or longrope"};
      return {};
    }
    RopeTable table = plainRope(base, rotated(), kind == "linear" ? factor : 1);
    readFactors(table, kind == "longrope" ? longName() : "rope_freqs", kind == "longrope");
    if (kind == "longrope") {
      double original =
          double(size("rope.scaling.original_context_length", kLongestContext, config.contextLength));
      double ratio = double(config.contextLength) / original;
      table.magnitude = number("rope.scaling.attn_factor",
                               ratio > 1 ? std::sqrt(1 + std::log(ratio) / std::log(original)) : 1);
    }
    return table;
  }

  // One set of factors must serve every length, or a row would depend on how long its sequence grows: the
  // long ones where the context is longer than the original one.
  std::string longName() {
    int64_t original = size("rope.scaling.original_context_length", kLongestContext, config.contextLength);
    return config.contextLength > original ? "rope_factors_long" : "rope_factors_short";
  }

  void readFactors(RopeTable &table, const std::string &name, bool isNeeded) {
    GgufWeights weights(std::shared_ptr<const GgufFile>(std::shared_ptr<void>(), &file)); // lent
    if (!status.isOk() || (!isNeeded && !weights.has(name)))
      return;
    auto factors = weights.vector(name, int64_t(table.inverseFrequencies.size()));
    if (!factors.isOk()) {
      status = factors.status();
      return;
    }
    for (float factor : *factors)
      if (!(factor > 0) && status.isOk())
        status = corruptFile("tensor '" + name + "' has a factor that is not above 0");
    divideFrequencies(table, *factors);
  }

  const GgufFile &file;
  const Architecture *architecture = nullptr;
  DecoderConfig config;
  Status status;
};

} // namespace

StatusOr<DecoderConfig> readGgufConfig(const GgufFile &file) { return Reader(file).read(); }

} // namespace dspark::checkpoint
