// A draft while a model writes it, token after token.
#pragma once
#include "runtime/llm/speculation/Drafter.h"
#include <optional>

namespace dspark::llm {

/// Where drafts of a model end.
struct DraftLimits {
  int32_t longestDraft = 8;    // tokens
  float leastSurvival = 0.05f; // no token is drafted whose estimates up to it multiply to less
};

/// Errors: a draft of a vocabulary that is not the model's.
Status checkVocabulary(int32_t draft, int32_t model);

struct DraftGrowth {
  const DraftRequest *request = nullptr;
  Draft *draft = nullptr;
  int32_t limit = 0;       // tokens
  float leastSurvival = 0; // as DraftLimits has it
  float survival = 1;      // product of the estimates so far
  bool isDone = false;

  /// Drafts the next token from its logits [vocabulary]: drawn through the request's pipeline, its
  /// distribution recorded, or the likeliest where there is none. `confidence`, of the token being accepted,
  /// must not depend on the token; without one it is the largest probability of the logits' softmax. Whether
  /// a token is drafted at all depends on those before it alone. A finished draft whose tokens left no choice
  /// is deterministic. Errors: logits that are not finite, those of the pipeline.
  Status extend(std::span<const float> logits, std::optional<float> confidence = {});
};

} // namespace dspark::llm
