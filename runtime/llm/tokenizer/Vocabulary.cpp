#include "runtime/llm/tokenizer/Vocabulary.h"
#include <algorithm>
#include <bit>
#include <functional>

namespace dspark::llm {
namespace {

size_t hash(std::string_view text) { return std::hash<std::string_view>{}(text); }

// "<0x0A>" is 10; anything else -1.
int parseByteName(std::string_view text) {
  const auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>' || digit(text[3]) < 0 ||
      digit(text[4]) < 0)
    return -1;
  return digit(text[3]) * 16 + digit(text[4]);
}

} // namespace

Vocabulary::Vocabulary(const std::vector<TokenSpec> &tokens) {
  std::fill(std::begin(byteTokens), std::end(byteTokens), -1);
  slots.assign(std::bit_ceil(tokens.size() * 2 + 1), -1);
  for (const TokenSpec &token : tokens) {
    const int32_t id = size();
    bytes += token.text;
    ends.push_back(uint32_t(bytes.size()));
    scores.push_back(token.score);
    kinds.push_back(token.kind);
    longest = std::max(longest, token.text.size());
    if (const int value = token.kind == TokenKind::Byte ? byteValue(id) : -1;
        value >= 0 && byteTokens[value] < 0)
      byteTokens[value] = id;
  }
  for (const bool normal : {true, false})
    for (int32_t id = 0; id < size(); ++id)
      if ((kind(id) == TokenKind::Normal) == normal)
        index(id);
}

void Vocabulary::index(int32_t id) {
  size_t slot = hash(text(id)) & (slots.size() - 1);
  for (; slots[slot] >= 0; slot = (slot + 1) & (slots.size() - 1))
    if (text(slots[slot]) == text(id))
      return;
  slots[slot] = id;
}

int Vocabulary::byteValue(int32_t id) const {
  const int named = parseByteName(text(id));
  return named >= 0 ? named : text(id).size() == 1 ? uint8_t(text(id)[0]) : -1;
}

int32_t Vocabulary::find(std::string_view text) const {
  for (size_t slot = hash(text) & (slots.size() - 1); slots[slot] >= 0;
       slot = (slot + 1) & (slots.size() - 1))
    if (this->text(slots[slot]) == text)
      return slots[slot];
  return -1;
}

} // namespace dspark::llm
