// What a decoder-only language model is, as plain data: the form that the configurations of checkpoints (GGUF
// metadata, config.json) are brought to, and that the graph is built from. What a checkpoint says by having a
// tensor or not (biases, norms of queries and keys, norms behind a block) is not repeated here.
#pragma once
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
};

/// Mixtures of experts, in layers that have a router (tensor ffn_gate_inp): each row goes to the `used`
/// experts of `count` that softmax of the router's scores puts first, and their results are added with those
/// weights.
struct ExpertSettings {
  int64_t count = 0, used = 0, feedForward = 0;
  bool normalizes = true; // the weights of a row's experts add up to 1
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
  double normEpsilon = 1e-5;
  std::string activation = "silu"; // of the gate, as kernels/matmul/activation.h calls it
  bool interleavedRope = false;    // pairs are (2i, 2i + 1), else (i, i + rotated / 2)
  std::vector<RopeTable> ropes;
  std::vector<DecoderLayer> layers;
  double attentionScale = 0;                     // of q . k
  double attentionSoftcap = 0, logitSoftcap = 0; // 0: none
  double embeddingScale = 1;
};

} // namespace dspark::checkpoint
