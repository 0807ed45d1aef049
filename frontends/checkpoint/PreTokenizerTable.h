// The pre-tokenisers of byte-level models, by the name that GGUF files give them (tokenizer.ggml.pre).
#pragma once
#include <string_view>
#include <vector>

namespace dspark::checkpoint {

/// Patterns are applied one after the other, each to the pieces that the one before left (PCRE2 syntax).
struct PreTokenizerRow {
  std::vector<std::string_view> names;
  std::vector<std::string_view> patterns;
  bool ignoreMerges = false;
};

/// Null for an unknown name.
const PreTokenizerRow *findPreTokenizer(std::string_view name);

} // namespace dspark::checkpoint
