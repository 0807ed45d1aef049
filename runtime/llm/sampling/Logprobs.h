// Log probabilities beside the tokens, in a named mode: of the model's own logits, or of what was drawn from.
#pragma once
#include "runtime/base/Status.h"
#include "runtime/llm/sampling/Distribution.h"
#include <span>

namespace dspark::llm {

enum class LogprobMode {
  Raw,       // log softmax of the model's logits, before bias, penalties and temperature
  Processed, // log of the distribution after the whole pipeline: 0 for greedy
};

struct TokenLogprob {
  int32_t token = 0;
  float logprob = 0;
};

struct Logprobs {
  TokenLogprob chosen;
  std::vector<TokenLogprob>
      top; // most probable first, of equal ones the lowest ids; fewer where fewer have any
};

/// Errors: NaN or infinity among the logits.
StatusOr<Logprobs> rawLogprobs(std::span<const float> logits, int32_t chosen, int32_t count);
/// `chosen` must be one of the distribution's tokens.
Logprobs processedLogprobs(const Distribution &distribution, int32_t chosen, int32_t count);

} // namespace dspark::llm
