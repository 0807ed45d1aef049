#include "runtime/llm/tokenizer/Normalizer.h"
#include "runtime/llm/tokenizer/Characters.h"
#include "runtime/llm/tokenizer/Charsmap.h"
#include "runtime/llm/tokenizer/Utf8.h"
#include <utility>

namespace dspark::llm {
namespace {

// A step that looks at one character at a time: `rewrite` appends what becomes of it.
template <typename Rewrite> std::string mapCharacters(std::string_view text, Rewrite rewrite) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const CodePoint c = decodeUtf8(text, i);
    rewrite(out, c.value);
    i += c.bytes;
  }
  return out;
}

std::string replaceAll(std::string_view text, std::string_view pattern, std::string_view content) {
  std::string out;
  for (size_t i = 0;;) {
    const size_t found = pattern.empty() ? std::string_view::npos : text.find(pattern, i);
    if (found == std::string_view::npos)
      return out.append(text.substr(i));
    out.append(text.substr(i, found - i)).append(content);
    i = found + pattern.size();
  }
}

std::string_view strip(std::string_view text, bool left, bool right) {
  size_t begin = 0, end = text.size();
  while (left && begin < end) {
    const CodePoint c = decodeUtf8(text, begin);
    if (!isWhiteSpace(c.value))
      break;
    begin += c.bytes;
  }
  while (right && begin < end) {
    size_t last = end - 1;
    while (last > begin && isContinuationByte(text[last]))
      --last;
    if (!isWhiteSpace(decodeUtf8(text, last).value))
      break;
    end = last;
  }
  return text.substr(begin, end - begin);
}

std::string collapseSpaces(std::string_view text) {
  std::string out;
  for (char c : text)
    if (c != ' ' || out.empty() || out.back() != ' ')
      out += c;
  return out;
}

std::string joinWords(std::string_view text) {
  std::string out;
  bool between = false;
  for (size_t i = 0; i < text.size();) {
    const CodePoint c = decodeUtf8(text, i);
    if (isWhiteSpace(c.value)) {
      between = !out.empty();
    } else {
      if (std::exchange(between, false))
        out += ' ';
      out += text.substr(i, c.bytes);
    }
    i += c.bytes;
  }
  return out;
}

std::string applyStep(const NormalizerStep &step, std::string_view text, bool first) {
  switch (step.kind) {
  case NormalizerKind::Nfc:
    return normalize(text, Form::Nfc);
  case NormalizerKind::Nfd:
    return normalize(text, Form::Nfd);
  case NormalizerKind::Nfkc:
    return normalize(text, Form::Nfkc);
  case NormalizerKind::Nfkd:
    return normalize(text, Form::Nfkd);
  case NormalizerKind::Lowercase:
    return mapCharacters(text, [](std::string &out, char32_t c) { appendUtf8(out, toLower(c)); });
  case NormalizerKind::StripAccents:
    return mapCharacters(text, [](std::string &out, char32_t c) {
      if (!isNonspacingMark(c))
        appendUtf8(out, c);
    });
  case NormalizerKind::StripMarks:
    return mapCharacters(text, [](std::string &out, char32_t c) {
      if (!isMark(c))
        appendUtf8(out, c);
    });
  case NormalizerKind::Replace:
    return replaceAll(text, step.pattern, step.content);
  case NormalizerKind::Prepend:
    return step.content + std::string(text);
  case NormalizerKind::PrependMissing:
  case NormalizerKind::PrependMissingFirst:
    if (text.starts_with(step.content) || (step.kind == NormalizerKind::PrependMissingFirst && !first))
      return std::string(text);
    return step.content + std::string(text);
  case NormalizerKind::StripLeft:
    return std::string(strip(text, true, false));
  case NormalizerKind::StripRight:
    return std::string(strip(text, false, true));
  case NormalizerKind::Charsmap:
    return applyCharsmap(step.content, text);
  case NormalizerKind::BertClean:
    return mapCharacters(text, [](std::string &out, char32_t c) {
      if (isWhiteSpace(c))
        out += ' ';
      else if (c != 0 && c != 0xFFFD && !isControl(c))
        appendUtf8(out, c);
    });
  case NormalizerKind::BertSpaceChinese:
    return mapCharacters(text, [](std::string &out, char32_t c) {
      const bool chinese = isChineseCharacter(c);
      if (chinese)
        out += ' ';
      appendUtf8(out, c);
      if (chinese)
        out += ' ';
    });
  case NormalizerKind::CollapseSpaces:
    return collapseSpaces(text);
  case NormalizerKind::JoinWords:
    return joinWords(text);
  }
  return std::string(text);
}

} // namespace

StatusOr<Normalizer> Normalizer::build(std::vector<NormalizerStep> steps) {
  for (const NormalizerStep &step : steps)
    if (step.kind == NormalizerKind::Charsmap)
      DSPARK_RETURN_IF_ERROR(checkCharsmap(step.content));
  Normalizer normalizer;
  normalizer.steps = std::move(steps);
  return normalizer;
}

std::string Normalizer::apply(std::string_view text, bool first) const {
  std::string out(text);
  for (const NormalizerStep &step : steps)
    if (!out.empty())
      out = applyStep(step, out, first);
  return out;
}

} // namespace dspark::llm
