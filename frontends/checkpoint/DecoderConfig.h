// What a decoder-only language model is, as plain data: the form that the configurations of checkpoints (GGUF
// metadata, config.json) are brought to, and that the graph is built from. What a checkpoint says by having a
// tensor or not (biases, norms of queries and keys, norms behind a block) is not repeated here.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace dspark::checkpoint {

/// What a configuration may ask for; files that ask for more are refused.
inline constexpr int64_t kMostExperts = 4096; // what packed_experts takes
inline constexpr int64_t kMostLayers = 1024, kMostHeads = 4096, kLargestSize = int64_t(1) << 24;
inline constexpr int64_t kLongestContext = int64_t(1) << 32;

/// Angles of rotary embedding: position * inverseFrequencies[i], for pairs i of a head's elements.
struct RopeTable {
  std::vector<float> inverseFrequencies; // half as many as rotated elements
  double magnitude = 1;                  // of cosine and sine (yarn, longrope)
  double latentScale = 1; // of scores, where attention is latent (DeepSeek's mscale_all_dim, squared)
};

/// Mixtures of experts, in layers that have a router (tensor ffn_gate_inp): each row goes to the `used`
/// experts of `count` that softmax of the router's scores puts first, and their results are added with those
/// weights. A bias (exp_probs_b) counts for the choice alone.
struct ExpertSettings {
  int64_t count = 0, used = 0, feedForward = 0;
  bool normalizes = true; // the weights of a row's experts add up to 1
  bool isSigmoid = false; // in place of softmax
  double scale = 1;       // of the weights
  /// A row's experts all belong to the `usedGroups` groups of the highest scores, sums of their `bestOfGroup`
  /// best.
  int64_t groups = 1, usedGroups = 1, bestOfGroup = 1;
  int64_t shared = 0; // size of the feed-forward that every row goes through beside them; 0: none
};

/// What is wrong with the groups; "" if nothing is.
inline std::string groupTrouble(const ExpertSettings &e) {
  if (e.count % e.groups != 0)
    return std::to_string(e.count) + " experts do not make " + std::to_string(e.groups) + " groups";
  int64_t each = e.count / e.groups;
  if (e.groups > 1 && (e.bestOfGroup > each || e.used > each * e.usedGroups))
    return std::to_string(e.used) + " experts of " + std::to_string(e.usedGroups) +
           " groups are wanted, which have " + std::to_string(each) + " each";
  return "";
}

/// Multi-head latent attention (DeepSeek-AI 2024, DeepSeek-V2): keys and values of all heads are linear in
/// one normed row of `rank` elements per token; `rotated` elements of keys are the same for all heads. Only
/// these two are cached.
struct LatentAttention {
  int64_t rank = 0;               // 0: attention is ordinary
  int64_t queryRank = 0;          // of the row that queries are linear in; 0: in the hidden row
  int64_t plain = 0, rotated = 0; // elements of a head's queries and keys
  int64_t value = 0;              // of its values
  double normEpsilon = 1e-6;      // of the two rows' norms

  int64_t rowSize() const { return rank + rotated; }
};

struct DecoderLayer {
  int64_t window = -1; // tokens that a token sees, itself included; -1: all
  int rope = 0;        // index into DecoderConfig::ropes
};

struct DecoderConfig {
  std::string architecture; // "llama", "gemma3" ...: a row of the table
  int64_t hidden = 0, vocabulary = 0, contextLength = 0, heads = 0, kvHeads = 0, headSize = 0,
          feedForward = 0;
  ExpertSettings experts;
  LatentAttention latent; // kvHeads is then 1, headSize the rotated part
  double normEpsilon = 1e-5;
  std::string activation = "silu"; // of the gate, as kernels/matmul/activation.h calls it
  bool interleavedRope = false;    // pairs are (2i, 2i + 1), else (i, i + rotated / 2)
  std::vector<RopeTable> ropes;
  std::vector<DecoderLayer> layers;
  double attentionScale = 0;                     // of q . k
  double attentionSoftcap = 0, logitSoftcap = 0; // 0: none
  double embeddingScale = 1;

  /// The most tokens that a layer sees; 0 if one sees all.
  int64_t widestWindow() const {
    int64_t widest = 0;
    for (const DecoderLayer &layer : layers) {
      if (layer.window < 0)
        return 0;
      widest = std::max(widest, layer.window);
    }
    return widest;
  }
};

} // namespace dspark::checkpoint
