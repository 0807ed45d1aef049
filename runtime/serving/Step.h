// What one step does for one sequence.
#pragma once
#include "runtime/llm/speculation/Verification.h"
#include "runtime/serving/Sequence.h"

namespace dspark::serving {

struct StepEntry {
  Sequence *sequence = nullptr;
  int64_t rows = 0;                  // the first of its pending tokens
  const llm::Draft *draft = nullptr; // verified behind them, if any
  int32_t drafts = 0;                // of its tokens, as many
  int64_t firstLogits = 0;           // index of the first row of logits, if it gets any
  llm::Verdict verdict = {};         // what came of it

  std::span<const int32_t> draftTokens() const {
    return draft ? std::span(draft->tokens).first(size_t(drafts)) : std::span<const int32_t>();
  }
};

} // namespace dspark::serving
