// A draft while a model writes it, token after token.
#pragma once
#include "runtime/llm/speculation/Drafter.h"
#include <optional>

namespace dspark::llm {

struct DraftGrowth {
  const DraftRequest *request = nullptr;
  Draft *draft = nullptr;
  int32_t limit = 0;       // tokens
  float leastSurvival = 0; // no token is drafted whose estimates up to it multiply to less
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
