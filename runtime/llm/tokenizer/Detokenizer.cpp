#include "runtime/llm/tokenizer/Detokenizer.h"
#include "runtime/llm/tokenizer/Utf8.h"

namespace dspark::llm {
namespace {

constexpr std::string_view kSpaceSymbol = "\xE2\x96\x81"; // U+2581, SentencePiece's space
constexpr std::string_view kReplacement = "\xEF\xBF\xBD"; // U+FFFD

std::string spacesBack(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();)
    if (text.substr(i).starts_with(kSpaceSymbol)) {
      out += ' ';
      i += kSpaceSymbol.size();
    } else {
      out += text[i++];
    }
  return out;
}

// Bytes that the character starting with `lead` should have; 0 if none starts so.
uint32_t expectedBytes(uint8_t lead) {
  return lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
}

// Whether the bytes from `at` to the end are the beginning of a character that more bytes could complete.
bool mayGrow(std::string_view text, size_t at) {
  const size_t have = text.size() - at;
  if (have >= expectedBytes(uint8_t(text[at])))
    return false;
  for (size_t i = at + 1; i < text.size(); ++i)
    if (!isContinuationByte(text[i]))
      return false;
  return true;
}

} // namespace

std::string tokenBytes(const Tokenizer &tokenizer, int32_t id, bool showControl) {
  const Vocabulary &vocabulary = tokenizer.vocabulary();
  if (id < 0 || id >= vocabulary.size())
    return {};
  const std::string_view text = vocabulary.text(id);
  const TokenizerSpec &spec = tokenizer.spec();
  switch (vocabulary.kind(id)) {
  case TokenKind::Control:
  case TokenKind::Unknown:
    return showControl ? std::string(text) : std::string();
  case TokenKind::Byte:
    return vocabulary.byteValue(id) < 0 ? std::string() : std::string(1, char(vocabulary.byteValue(id)));
  case TokenKind::UserDefined:
    return std::string(text);
  case TokenKind::Normal:
  case TokenKind::Unused:
    break;
  }
  if (spec.model == ModelKind::WordPiece)
    return text.starts_with(spec.continuation) ? std::string(text.substr(spec.continuation.size()))
                                               : " " + std::string(text);
  return spec.spaceSymbol ? spacesBack(text) : std::string(text);
}

std::string Detokenizer::push(int32_t id) {
  std::string bytes = tokenBytes(*tokenizer, id, showControl);
  if (atStart && !bytes.empty()) {
    atStart = false;
    if (bytes[0] == ' ')
      bytes.erase(0, 1);
  }
  held += bytes;
  return release(false);
}

std::string Detokenizer::finish() { return release(true); }

std::string Detokenizer::release(bool final) {
  std::string out;
  size_t at = 0;
  while (at < held.size()) {
    const CodePoint c = decodeUtf8(held, at);
    if (c.value != kInvalidCodePoint) {
      out.append(held, at, c.bytes);
      at += c.bytes;
    } else if (!final && mayGrow(held, at)) {
      break;
    } else {
      out += kReplacement;
      ++at;
    }
  }
  held.erase(0, at);
  return out;
}

std::string decode(const Tokenizer &tokenizer, const std::vector<int32_t> &ids, bool showControl) {
  Detokenizer detokenizer(tokenizer, showControl);
  std::string text;
  for (int32_t id : ids)
    text += detokenizer.push(id);
  return text + detokenizer.finish();
}

} // namespace dspark::llm
