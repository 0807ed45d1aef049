// The tokens' texts, and the way back from a text to its id.
#pragma once
#include "runtime/llm/tokenizer/TokenizerSpec.h"
#include <string_view>

namespace dspark::llm {

class Vocabulary {
public:
  /// Where a text occurs twice, normal tokens are found before others, then lower ids.
  explicit Vocabulary(const std::vector<TokenSpec> &tokens);

  int32_t size() const { return int32_t(ends.size()); }
  std::string_view text(int32_t id) const {
    const uint32_t begin = id ? ends[size_t(id) - 1] : 0;
    return std::string_view(bytes).substr(begin, ends[size_t(id)] - begin);
  }
  TokenKind kind(int32_t id) const { return kinds[size_t(id)]; }
  double score(int32_t id) const { return scores[size_t(id)]; }
  /// -1 if no token has this text.
  int32_t find(std::string_view text) const;
  /// The token of kind Byte for this byte, or -1. Its text is the byte itself or "<0xNN>".
  int32_t byteToken(uint8_t byte) const { return byteTokens[byte]; }
  /// The byte that a token of kind Byte stands for, or -1.
  int byteValue(int32_t id) const;
  size_t longestText() const { return longest; }

private:
  void index(int32_t id);

  std::string bytes;
  std::vector<uint32_t> ends;
  std::vector<double> scores;
  std::vector<TokenKind> kinds;
  std::vector<int32_t> slots; // open addressing, a power of two, at most half full
  int32_t byteTokens[256];
  size_t longest = 0;
};

} // namespace dspark::llm
