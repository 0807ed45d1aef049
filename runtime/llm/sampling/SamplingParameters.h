// What a request wants of its tokens. docs/sampling.md says what each value does and in which order.
#pragma once
#include "runtime/base/Status.h"
#include <cstdint>
#include <vector>

namespace dspark::llm {

/// Below this, dividing by the temperature would only amplify rounding: the token of the largest logit.
inline constexpr float kGreedyBelow = 1e-5f;

struct LogitBias {
  int32_t token = 0;
  float bias = 0; // added to the logit, -100 to 100, or minus infinity: never this token
};

struct SamplingParameters {
  float temperature = 1;       // 0: greedy
  int32_t topK = 0;            // 0: all
  float topP = 1;              // 1: all
  float minP = 0;              // 0: all
  float typicalP = 1;          // 1: all
  float repetitionPenalty = 1; // of tokens in prompt or output
  float presencePenalty = 0;   // of tokens in the output
  float frequencyPenalty = 0;  // times their count in the output
  std::vector<LogitBias> logitBias = {};
  uint64_t seed = 0;

  bool greedy() const { return temperature < kGreedyBelow; }
  bool penalizes() const { return repetitionPenalty != 1 || presencePenalty != 0 || frequencyPenalty != 0; }
  /// Whether the token is that of the model's largest logit, with nothing changed before.
  bool plainGreedy() const { return greedy() && !penalizes() && logitBias.empty(); }

  /// Errors: InvalidArgument with the value and its limits.
  Status check(int32_t vocabulary) const;
};

} // namespace dspark::llm
