#include "frontends/checkpoint/DraftConfig.h"
#include "frontends/checkpoint/JsonFields.h"
#include <cmath>

namespace dspark::checkpoint {
namespace {

constexpr int64_t kMostTaps = 64, kLargestBlock = 1024, kLargestRank = 1 << 16;

class Reader {
public:
  explicit Reader(const Json &root) : root(root), top(root, status), own(root, status) {}

  StatusOr<DraftConfig> read() {
    findForm();
    DSPARK_RETURN_IF_ERROR(Status(status));
    const Json *nested = top.object("transformer_layer_config");
    DSPARK_ASSIGN_OR_RETURN(config.model, readHuggingFaceConfig((nested ? *nested : root).dump()));
    const TensorRules &rules = config.model.tensors;
    if (rules.hasOuterNorms || rules.addsOneToNorms || rules.hasExperts || rules.isLatent)
      top.refuse("its layers are those of " + config.model.decoder.architecture +
                 "; drafts are read with layers of llama and qwen3");
    readTaps();
    const int64_t vocabulary = config.model.decoder.vocabulary;
    config.targetLayers = top.sizeOrZero("num_target_layers", kMostLayers, 0);
    config.draftVocabulary = top.size("draft_vocab_size", vocabulary, vocabulary);
    if (config.kind == DraftConfig::Kind::Block)
      readBlock();
    else if (config.model.decoder.layers.size() != 1)
      top.refuse("an EAGLE-3 draft of " + std::to_string(config.model.decoder.layers.size()) +
                 " layers, expected 1");
    if (!status.isOk())
      return status;
    return std::move(config);
  }

private:
  // Who wrote it, by the fields that it has.
  void findForm() {
    const std::vector<std::string> names = top.strings("architectures");
    const std::string name = names.empty() ? "" : names[0], kind = top.string("speculators_model_type", "");
    const auto is = [&](std::string_view part) { return name.find(part) != name.npos; };
    if (const Json *nested = top.object("dflash_config")) {
      own = top.within(*nested, "dflash_config.");
      isAnchorLeft = true;
    }
    if (is("Eagle3") || kind == "eagle3")
      config.kind = DraftConfig::Kind::Eagle3;
    else if (!is("DSpark") && !is("DFlash") && kind != "dspark" && kind != "dflash" && !isAnchorLeft)
      top.refuse("the architecture '" + name.substr(0, 80) +
                 "' is no draft; those with DSpark, DFlash or Eagle3 in their names are");
    isAnchorLeft |= kind == "dflash";
  }

  // speculators counts from 1: it names the layer that reads the hidden states.
  void readTaps() {
    const char *counted = "aux_hidden_state_layer_ids";
    const bool isCounted = top.has(counted);
    const std::vector<double> ids = isCounted ? top.numbers(counted) : own.numbers("target_layer_ids");
    const std::string key = isCounted ? counted : "target_layer_ids";
    if (ids.empty() || int64_t(ids.size()) > kMostTaps)
      top.fail(key, std::to_string(ids.size()) + " layers", "1 to " + std::to_string(kMostTaps));
    for (double id : ids) {
      const double layer = id - isCounted;
      const int64_t least = config.taps.empty() ? -1 : config.taps.back() + 1;
      if (!(layer >= double(least) && layer < double(kMostLayers)) || layer != std::floor(layer))
        return top.fail(key, std::to_string(id), "layers in ascending order");
      config.taps.push_back(int64_t(layer));
    }
  }

  void readBlock() {
    config.blockRows = top.size("block_size", kLargestBlock);
    config.maskToken = own.sizeOrZero("mask_token_id", config.model.decoder.vocabulary - 1, -1);
    if (config.maskToken < 0)
      own.fail("mask_token_id", "nothing", "a token");
    config.markovRank = own.sizeOrZero("markov_rank", kLargestRank, 0);
    if (config.markovRank > 0)
      config.markov = markovHead(own.string("markov_head_type", "vanilla"));
    config.hasConfidence = own.boolean("enable_confidence_head", false);
    config.confidenceSeesMarkov =
        config.hasConfidence && own.boolean("confidence_head_with_markov", config.markovRank > 0);
    if (config.confidenceSeesMarkov && config.markovRank == 0)
      own.fail("confidence_head_with_markov", "true", "false without a Markov head");
    // Who says nothing: DeepSpec and speculators' DSpark predict from the anchor's row, DFlash does not.
    config.anchorPredicts =
        top.boolean("sample_from_anchor", own.boolean("sample_from_anchor", !isAnchorLeft));
    if (config.longestBlock() < 1)
      top.fail("block_size", std::to_string(config.blockRows),
               "2 or more where the anchor's row gives no draft");
  }

  MarkovHead markovHead(const std::string &name) {
    if (name == "vanilla")
      return MarkovHead::Vanilla;
    if (name == "gated")
      return MarkovHead::Gated;
    if (name != "rnn")
      own.refuse("markov_head_type is '" + name.substr(0, 80) + "', expected vanilla, gated or rnn");
    return MarkovHead::Rnn;
  }

  const Json &root;
  Status status;
  JsonFields top, own;       // own: of the draft's own settings, where they are apart
  bool isAnchorLeft = false; // its row gives no draft, unless the file says so
  DraftConfig config;
};

} // namespace

StatusOr<DraftConfig> readDraftConfig(std::string_view text) {
  DSPARK_ASSIGN_OR_RETURN(Json root, parseJsonObject(text));
  return Reader(root).read();
}

Status checkDraftFits(const DraftConfig &draft, const DecoderConfig &target) {
  const auto differs = [](const char *what, int64_t found, int64_t expected) {
    return invalidArgument("the draft was made for a model with " + std::string(what) + " " +
                           std::to_string(found) + ", this one has " + std::to_string(expected));
  };
  const DecoderConfig &own = draft.model.decoder;
  const int64_t layers = int64_t(target.layers.size());
  if (own.hidden != target.hidden)
    return differs("hidden size", own.hidden, target.hidden);
  if (own.vocabulary != target.vocabulary)
    return differs("vocabulary", own.vocabulary, target.vocabulary);
  if (draft.targetLayers != 0 && draft.targetLayers != layers)
    return differs("layers", draft.targetLayers, layers);
  // What training called the last layer's result is behind the final norm in some versions and before it in
  // others.
  if (draft.taps.back() >= layers - 1)
    return invalidArgument("the draft reads the result of layer " + std::to_string(draft.taps.back()) +
                           ", expected one before the last of the model's " + std::to_string(layers));
  return Status::ok();
}

} // namespace dspark::checkpoint
