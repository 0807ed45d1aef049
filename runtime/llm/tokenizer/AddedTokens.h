// Finds the tokens that are matched as they stand, before the text is cut into pieces: user-defined ones
// always, control tokens where the caller allows it. At each place the longest match counts.
#pragma once
#include "runtime/llm/tokenizer/TokenizerSpec.h"
#include <functional>
#include <string_view>
#include <unordered_map>

namespace dspark::llm {

/// A stretch of the input: a matched token, or text (id -1).
struct Stretch {
  std::string_view text;
  int32_t id;
};

class AddedTokens {
public:
  /// `text` gives the form in which token `id` is looked for; an empty one is never found.
  AddedTokens(const TokenizerSpec &spec, bool normalized,
              const std::function<std::string(const TokenSpec &)> &text);

  /// Cuts `text` (valid UTF-8) into stretches. O(n * number of different lengths). Thread-safe.
  std::vector<Stretch> split(std::string_view text, bool allowControl) const;

private:
  struct Entry {
    int32_t id;
    bool control, leftStrip, rightStrip, singleWord;
  };
  const Entry *match(std::string_view text, size_t at, bool allowControl, size_t &length) const;

  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::unordered_map<std::string, Entry, Hash, std::equal_to<>> entries;
  std::vector<size_t> lengths[256]; // by first byte, falling
};

} // namespace dspark::llm
