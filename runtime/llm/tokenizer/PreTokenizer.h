// The second stage of a tokenizer: cuts normalised text into pieces that the model then encodes one by one.
#pragma once
#include "runtime/base/Status.h"
#include "runtime/llm/tokenizer/Regex.h"
#include "runtime/llm/tokenizer/TokenizerSpec.h"
#include <string_view>

namespace dspark::llm {

class PreTokenizer {
public:
  /// Errors: a pattern that does not compile.
  static StatusOr<PreTokenizer> build(const std::vector<PreTokenizerStep> &steps);

  /// Pieces of `text` (valid UTF-8) in order; they point into it. Without steps: the text. Thread-safe.
  /// Errors: a pattern exhausted its bounds.
  StatusOr<std::vector<std::string_view>> split(std::string_view text) const;

private:
  struct Step {
    PreTokenizerKind kind;
    Regex regex;
  };
  std::vector<Step> steps;
};

} // namespace dspark::llm
