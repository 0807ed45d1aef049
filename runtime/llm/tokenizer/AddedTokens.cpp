#include "runtime/llm/tokenizer/AddedTokens.h"
#include "runtime/llm/tokenizer/Characters.h"
#include "runtime/llm/tokenizer/Utf8.h"
#include <algorithm>

namespace dspark::llm {
namespace {

size_t previousStart(std::string_view text, size_t at) {
  do
    --at;
  while (at > 0 && isContinuationByte(text[at]));
  return at;
}

bool isWordBefore(std::string_view text, size_t at) {
  return at > 0 && isWordCharacter(decodeUtf8(text, previousStart(text, at)).value);
}

bool isWordAfter(std::string_view text, size_t at) {
  return at < text.size() && isWordCharacter(decodeUtf8(text, at).value);
}

size_t skipSpaceLeft(std::string_view text, size_t at, size_t limit) {
  while (at > limit) {
    const size_t before = previousStart(text, at);
    if (before < limit || !isWhiteSpace(decodeUtf8(text, before).value))
      break;
    at = before;
  }
  return at;
}

size_t skipSpaceRight(std::string_view text, size_t at) {
  while (at < text.size()) {
    const CodePoint c = decodeUtf8(text, at);
    if (!isWhiteSpace(c.value))
      break;
    at += c.bytes;
  }
  return at;
}

} // namespace

AddedTokens::AddedTokens(const TokenizerSpec &spec, bool normalized,
                         const std::function<std::string(const TokenSpec &)> &text) {
  for (size_t id = 0; id < spec.tokens.size(); ++id) {
    const TokenSpec &token = spec.tokens[id];
    const bool control = token.kind == TokenKind::Control || token.kind == TokenKind::Unknown;
    if ((!control && token.kind != TokenKind::UserDefined) || token.normalized != normalized)
      continue;
    const std::string form = text(token);
    if (form.empty() || !entries
                             .try_emplace(form, Entry{int32_t(id), control, token.leftStrip, token.rightStrip,
                                                      token.singleWord})
                             .second)
      continue;
    std::vector<size_t> &known = lengths[uint8_t(form[0])];
    if (std::find(known.begin(), known.end(), form.size()) == known.end())
      known.push_back(form.size());
  }
  for (std::vector<size_t> &known : lengths)
    std::sort(known.begin(), known.end(), std::greater<>());
}

const AddedTokens::Entry *AddedTokens::match(std::string_view text, size_t at, bool allowControl,
                                             size_t &length) const {
  for (size_t candidate : lengths[uint8_t(text[at])]) {
    if (candidate > text.size() - at)
      continue;
    const auto found = entries.find(text.substr(at, candidate));
    if (found == entries.end() || (found->second.control && !allowControl))
      continue;
    if (found->second.singleWord && (isWordBefore(text, at) || isWordAfter(text, at + candidate)))
      continue;
    length = candidate;
    return &found->second;
  }
  return nullptr;
}

std::vector<Stretch> AddedTokens::split(std::string_view text, bool allowControl) const {
  std::vector<Stretch> stretches;
  size_t begin = 0; // of the text not yet in a stretch
  const auto flush = [&](size_t end) {
    if (end > begin)
      stretches.push_back({text.substr(begin, end - begin), -1});
  };
  for (size_t at = 0; at < text.size();) {
    size_t length = 0;
    const Entry *entry = match(text, at, allowControl, length);
    if (!entry) {
      ++at;
      continue;
    }
    flush(entry->leftStrip ? skipSpaceLeft(text, at, begin) : at);
    stretches.push_back({text.substr(at, length), entry->id});
    at += length;
    begin = at = entry->rightStrip ? skipSpaceRight(text, at) : at;
  }
  flush(text.size());
  return stretches;
}

} // namespace dspark::llm
