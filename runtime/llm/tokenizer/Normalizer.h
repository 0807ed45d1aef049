// The first stage of a tokenizer: rewrites text before it is cut into pieces.
#pragma once
#include "runtime/base/Status.h"
#include "runtime/llm/tokenizer/TokenizerSpec.h"
#include <string_view>

namespace dspark::llm {

class Normalizer {
public:
  /// Errors: a compiled table of replacements that points outside itself.
  static StatusOr<Normalizer> build(std::vector<NormalizerStep> steps);

  /// `text` is valid UTF-8 and so is the result. `first`: the text starts the input. Thread-safe.
  std::string apply(std::string_view text, bool first) const;

private:
  std::vector<NormalizerStep> steps;
};

} // namespace dspark::llm
