// config.json -> DecoderConfig. What the file leaves out because transformers' classes know it stands in the
// table of architectures; names and defaults are those of transformers' configuration_<model>.py.
#include "frontends/checkpoint/HuggingFaceDecoder.h"
#include "frontends/checkpoint/HuggingFaceDeepSeek.h"
#include "frontends/checkpoint/HuggingFaceRope.h"
#include "frontends/checkpoint/JsonFields.h"
#include <cmath>

namespace dspark::checkpoint {
namespace {

enum class Windows {
  None,
  All,         // sliding_window, of every layer
  Upper,       // of those from max_window_layers on, if use_sliding_window
  Alternating, // of every second, from the first
  Pattern,     // of all but every sliding_window_pattern-th
};

// Keys of a mixture's settings; no count: there is none.
struct ExpertKeys {
  const char *count = nullptr, *feedForward = nullptr;
  bool normalizes = false; // else as norm_topk_prob says
};

struct Architecture {
  std::string_view type; // model_type
  std::string_view name; // as DecoderConfig and GGUF call it
  Windows windows = Windows::None;
  int64_t window = 0;                                           // if the file has no sliding_window
  int64_t vocabulary = 0, heads = 0, kvHeads = 0, headSize = 0; // 0: required; as heads; hidden / heads
  double normEpsilon = 1e-6;
  RopeDefaults rope = {};
  bool isGemma = false; // norms of w + 1, scaled embedding, gelu, tied
  bool hasOuterNorms = false, hasHeadNorms = false;
  double queryScalar = 0; // attention's scale is its inverse root; 0: of the head size
  double attentionSoftcap = 0, logitSoftcap = 0;
  ExpertKeys experts = {};
  DeepSeek deepSeek = DeepSeek::No;
};

constexpr Architecture kArchitectures[] = {
    {.type = "llama", .name = "llama"}, // SmolLM, SmolLM2 and TinyLlama too
    {.type = "mistral", .name = "llama", .windows = Windows::All, .window = 4096, .kvHeads = 8},
    {.type = "qwen2", .name = "qwen2", .windows = Windows::Upper, .window = 4096, .kvHeads = 32},
    {.type = "qwen3",
     .name = "qwen3",
     .windows = Windows::Upper,
     .window = 4096,
     .kvHeads = 32,
     .headSize = 128,
     .hasHeadNorms = true},
    {.type = "qwen3_moe",
     .name = "qwen3moe",
     .windows = Windows::Upper,
     .window = 4096,
     .kvHeads = 4,
     .headSize = 128,
     .hasHeadNorms = true,
     .experts = {.count = "num_experts", .feedForward = "moe_intermediate_size"}},
    {.type = "mixtral",
     .name = "llama",
     .windows = Windows::All,
     .kvHeads = 8,
     .normEpsilon = 1e-5,
     .experts = {.count = "num_local_experts", .feedForward = "intermediate_size", .normalizes = true}},
    {.type = "deepseek_v2", .name = "deepseek2", .deepSeek = DeepSeek::V2},
    {.type = "deepseek_v3", .name = "deepseek2", .deepSeek = DeepSeek::V3},
    {.type = "phi3",
     .name = "phi3",
     .windows = Windows::All,
     .normEpsilon = 1e-5,
     .rope = {.originalContext = 4096, .isYarnLongrope = true}},
    {.type = "gemma", .name = "gemma", .kvHeads = 16, .headSize = 256, .isGemma = true},
    {.type = "gemma2",
     .name = "gemma2",
     .windows = Windows::Alternating,
     .window = 4096,
     .kvHeads = 4,
     .headSize = 256,
     .isGemma = true,
     .hasOuterNorms = true,
     .queryScalar = 256,
     .attentionSoftcap = 50,
     .logitSoftcap = 30},
    {.type = "gemma3_text",
     .name = "gemma3",
     .windows = Windows::Pattern,
     .window = 4096,
     .vocabulary = 262208,
     .heads = 8,
     .kvHeads = 4,
     .headSize = 256,
     .rope = {.base = 1e6, .localBase = 1e4},
     .isGemma = true,
     .hasOuterNorms = true,
     .hasHeadNorms = true,
     .queryScalar = 256},
};

class Reader {
public:
  explicit Reader(const Json &root) : fields(root, status) {}

  StatusOr<HuggingFaceConfig> read() {
    DSPARK_RETURN_IF_ERROR(findArchitecture());
    readSizes();
    if (architecture->deepSeek == DeepSeek::No)
      readExperts();
    else
      readDeepSeek(fields, architecture->deepSeek, config);
    readTensorRules();
    if (status.isOk() && config.heads % config.kvHeads != 0)
      fields.fail("num_attention_heads", std::to_string(config.heads),
                  "a multiple of the " + std::to_string(config.kvHeads) + " key heads");
    if (fields.boolean("use_bidirectional_attention", false))
      fields.refuse("use_bidirectional_attention is true; here rows see only those before them");
    if (status.isOk())
      readLayers();
    if (!status.isOk())
      return status;
    return std::move(result);
  }

private:
  // A model of images and text has its language model in text_config.
  Status findArchitecture() {
    if (const Json *text = fields.object("text_config"))
      fields = JsonFields(*text, status);
    std::string type = fields.string("model_type", ""), known;
    for (const Architecture &row : kArchitectures) {
      known += (known.empty() ? "" : ", ") + std::string(row.type);
      if (row.type == type)
        architecture = &row;
    }
    if (!architecture)
      fields.refuse("model_type is '" + type.substr(0, 80) + "', expected one of " + known);
    return status;
  }

  void readSizes() {
    const Architecture &row = *architecture;
    auto orRequired = [](int64_t size) { return size > 0 ? std::optional(size) : std::nullopt; };
    config.architecture = row.name;
    config.hidden = fields.size("hidden_size", kLargestSize);
    config.contextLength = fields.size("max_position_embeddings", kLongestContext);
    config.vocabulary = fields.size("vocab_size", INT32_MAX, orRequired(row.vocabulary));
    config.heads = fields.size("num_attention_heads", kMostHeads, orRequired(row.heads));
    config.kvHeads =
        fields.size("num_key_value_heads", kMostHeads, row.kvHeads > 0 ? row.kvHeads : config.heads);
    config.headSize =
        fields.size("head_dim", 65536,
                    row.headSize > 0 ? row.headSize : std::max<int64_t>(1, config.hidden / config.heads));
    config.feedForward = fields.size("intermediate_size", kLargestSize);
    config.layers.resize(size_t(fields.size("num_hidden_layers", kMostLayers)));
    config.normEpsilon = fields.positive("rms_norm_eps", row.normEpsilon);
    double scalar = row.queryScalar > 0 ? fields.positive("query_pre_attn_scalar", row.queryScalar)
                                        : double(config.headSize);
    config.attentionScale = 1 / std::sqrt(scalar);
    config.attentionSoftcap = fields.numberOrNone("attn_logit_softcapping", row.attentionSoftcap);
    config.logitSoftcap = fields.numberOrNone("final_logit_softcapping", row.logitSoftcap);
    config.embeddingScale = row.isGemma ? std::sqrt(double(config.hidden)) : 1;
    config.activation = activation();
  }

  // The table's Gemmas name it hidden_activation; files of the first one say "gelu" in hidden_act and mean
  // the approximation.
  std::string activation() {
    std::string name = architecture->isGemma ? fields.string("hidden_activation", "gelu_pytorch_tanh")
                                             : fields.string("hidden_act", "silu");
    if (name == "silu" || name == "swish")
      return "silu";
    if (name == "gelu_pytorch_tanh" || name == "gelu_new")
      return "gelu_tanh";
    if (name == "gelu" || name == "relu")
      return name;
    fields.refuse("the activation '" + name.substr(0, 80) +
                  "' is not known; silu, gelu, gelu_pytorch_tanh and relu are");
    return "";
  }

  // Which layers are mixtures (decoder_sparse_step, mlp_only_layers) is seen from their tensors.
  void readExperts() {
    const ExpertKeys &keys = architecture->experts;
    if (!keys.count)
      return;
    ExpertSettings &experts = config.experts;
    experts.count = fields.size(keys.count, kMostExperts);
    experts.used = fields.size("num_experts_per_tok", experts.count);
    experts.feedForward = fields.size(keys.feedForward, kLargestSize);
    experts.normalizes = keys.normalizes || fields.boolean("norm_topk_prob", false);
  }

  void readTensorRules() {
    TensorRules &rules = result.tensors;
    rules.isTied = fields.boolean("tie_word_embeddings", architecture->isGemma);
    rules.hasOuterNorms = architecture->hasOuterNorms;
    rules.hasHeadNorms = architecture->hasHeadNorms;
    rules.addsOneToNorms = architecture->isGemma;
    rules.hasExperts = config.experts.count > 0;
    rules.isLatent = config.latent.rank > 0;
    rules.layers = int64_t(config.layers.size());
    if (rules.isLatent)
      rules.predictLayers = fields.sizeOrZero("num_nextn_predict_layers", kMostLayers, 0);
    if (const Json *quantization = fields.object("quantization_config"))
      rules.quantization = readQuantizationScheme(fields.within(*quantization, "quantization_config."));
  }

  void readLayers() {
    RopeTables tables = readHuggingFaceRope(fields, architecture->rope, config);
    config.ropes = std::move(tables.ropes);
    if (config.latent.rank > 0)
      config.attentionScale *= config.ropes[0].latentScale;
    int64_t window = windowSize();
    std::vector<std::string> types = fields.strings("layer_types");
    if (!types.empty() && types.size() != config.layers.size())
      return fields.fail("layer_types", std::to_string(types.size()) + " entries",
                         std::to_string(config.layers.size()) + ", one a layer");
    for (size_t i = 0; i < config.layers.size(); ++i) {
      bool isLocal = hasWindow(int64_t(i));
      if (!types.empty() && architecture->windows > Windows::All) {
        isLocal = types[i] == "sliding_attention";
        if (!isLocal && types[i] != "full_attention")
          fields.refuse("layer_types names '" + types[i].substr(0, 80) +
                        "', expected full_attention or sliding_attention");
      }
      isLocal = isLocal && window > 0;
      config.layers[i] = {isLocal ? window : -1, isLocal ? tables.local : 0};
    }
  }

  // 0: none.
  int64_t windowSize() {
    if (architecture->windows == Windows::None ||
        (architecture->windows == Windows::Upper && !fields.boolean("use_sliding_window", false)))
      return 0;
    if (fields.isNull("sliding_window"))
      return 0;
    return architecture->window == 0 && !fields.has("sliding_window")
               ? 0
               : fields.size("sliding_window", kLongestContext, architecture->window);
  }

  bool hasWindow(int64_t layer) {
    switch (architecture->windows) {
    case Windows::None:
      return false;
    case Windows::All:
      return true;
    case Windows::Upper:
      return layer >= fields.sizeOrZero("max_window_layers", kMostLayers * 64, 28);
    case Windows::Alternating:
      return layer % 2 == 0;
    case Windows::Pattern:
      return (layer + 1) % fields.size("sliding_window_pattern", kMostLayers, 6) != 0;
    }
    return false;
  }

  Status status;
  JsonFields fields;
  const Architecture *architecture = nullptr;
  HuggingFaceConfig result;
  DecoderConfig &config = result.decoder;
};

} // namespace

StatusOr<HuggingFaceConfig> readHuggingFaceConfig(std::string_view text) {
  DSPARK_ASSIGN_OR_RETURN(Json root, parseJsonObject(text));
  return Reader(root).read();
}

} // namespace dspark::checkpoint
