// Drafts: small networks that guess a language model's next tokens from its hidden states, in folders with
// config.json and .safetensors files. Block drafts (DSpark, arXiv 2607.05147, and DFlash, 2602.06036) guess a
// whole block at once, EAGLE-3 drafts (2503.01840) token after token. Read as DeepSpec, speculators,
// SpecForge and z-lab write them; docs/speculation.md has the differences.
#pragma once
#include "frontends/checkpoint/HuggingFaceDecoder.h"

namespace dspark::checkpoint {

enum class MarkovHead { None, Vanilla, Gated, Rnn };

struct DraftConfig {
  enum class Kind { Block, Eagle3 } kind = Kind::Block;
  HuggingFaceConfig model;   // its layers; heads and sizes as in the target's
  std::vector<int64_t> taps; // layers of the target whose results it reads, ascending, from 0; -1: embedding
  int64_t targetLayers = 0;  // of the model that it was made for; 0: not said
  int64_t draftVocabulary = 0; // logits it gives; tensor d2t says of which tokens, unless it is the target's

  // Of block drafts:
  int64_t blockRows = 0; // the anchor and masks
  bool anchorPredicts =
      true; // row k gives draft k + 1; else row k gives draft k, and the anchor's row nothing
  int64_t maskToken = 0;
  MarkovHead markov = MarkovHead::None;
  int64_t markovRank = 0;
  bool hasConfidence = false, confidenceSeesMarkov = false;

  /// Most tokens of a draft by a block.
  int64_t longestBlock() const { return blockRows - !anchorPredicts; }
};

/// `json` is the text of config.json. Errors: Unsupported if it is no draft, or one of a form that is not
/// known; CorruptFile with the key, the value found and what was expected.
StatusOr<DraftConfig> readDraftConfig(std::string_view json);

/// Whether a draft is made for this model. Errors: InvalidArgument with the size that differs.
Status checkDraftFits(const DraftConfig &draft, const DecoderConfig &target);

} // namespace dspark::checkpoint
