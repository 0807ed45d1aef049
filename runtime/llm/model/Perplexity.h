// Perplexity of a text, measured as llama.cpp's tool of that name does, so that figures can be compared: the
// tokens are cut into chunks of `context`, each evaluated by itself, and the tokens of its second half count,
// given all before them in the chunk.
#pragma once
#include "runtime/llm/model/ForwardModel.h"
#include <functional>

namespace dspark::llm {

struct PerplexityOptions {
  int64_t context = 512;
  int64_t chunks = 0;      // at most; 0: all whole chunks
  int32_t beginToken = -1; // put in the place of every chunk's first token; -1: none
  std::function<void(int64_t chunk, int64_t chunks, double perplexity)> onChunk = {};
};

struct PerplexityResult {
  double perplexity = 0;
  double standardError = 0; // of the perplexity, from the spread of the tokens' log probabilities
  int64_t chunks = 0, tokens = 0;
};

/// Errors: fewer tokens than one chunk, a context that does not fit the model, NaN logits, those of the
/// model.
StatusOr<PerplexityResult> measurePerplexity(ForwardModel &model, std::span<const int32_t> tokens,
                                             const PerplexityOptions &options = {});

} // namespace dspark::llm
