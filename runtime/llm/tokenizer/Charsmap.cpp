#include "runtime/llm/tokenizer/Charsmap.h"
#include "runtime/llm/tokenizer/Utf8.h"
#include <cstring>
#include <optional>

namespace dspark::llm {
namespace {

uint32_t word(std::string_view table, size_t index) {
  uint32_t value;
  std::memcpy(&value, table.data() + index * 4, 4);
  return value;
}

// One unit of the double array: a label, the distance to the children, and whether a value hangs at it.
struct Unit {
  uint32_t bits;
  uint32_t label() const { return bits & (1u << 31 | 0xFF); }
  uint32_t offset() const { return (bits >> 10) << ((bits & 1u << 9) >> 6); }
  bool hasValue() const { return bits >> 8 & 1; }
  uint32_t value() const { return bits & 0x7FFFFFFF; }
};

struct Match {
  size_t length;
  uint32_t replacement;
};

std::optional<Match> longestKey(std::string_view table, std::string_view text) {
  const size_t units = word(table, 0) / 4;
  const auto unit = [&](size_t i) {
    return i < units ? std::optional(Unit{word(table, 1 + i)}) : std::nullopt;
  };
  std::optional<Match> best;
  std::optional<Unit> node = unit(0);
  if (!node)
    return best;
  size_t at = node->offset();
  for (size_t i = 0; i < text.size(); ++i) {
    at ^= uint8_t(text[i]);
    node = unit(at);
    if (!node || node->label() != uint8_t(text[i]))
      break;
    at ^= node->offset();
    if (node->hasValue())
      if (const std::optional<Unit> leaf = unit(at))
        best = Match{i + 1, leaf->value()};
  }
  return best;
}

} // namespace

Status checkCharsmap(std::string_view table) {
  if (table.size() < 4 || word(table, 0) > table.size() - 4 || word(table, 0) % 4)
    return invalidArgument("the tokenizer's table of character replacements has " +
                           std::to_string(table.size()) + " bytes, which its header contradicts");
  return Status::ok();
}

std::string applyCharsmap(std::string_view table, std::string_view text) {
  const std::string_view replacements = table.substr(4 + word(table, 0));
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const std::optional<Match> match = longestKey(table, text.substr(i));
    if (match && match->replacement < replacements.size()) {
      const std::string_view tail = replacements.substr(match->replacement);
      const std::string_view replacement = tail.substr(0, tail.find('\0'));
      if (findInvalidUtf8(replacement) == std::string_view::npos) {
        out += replacement;
        i += match->length;
        continue;
      }
    }
    const uint32_t width = decodeUtf8(text, i).bytes;
    out += text.substr(i, width);
    i += width;
  }
  return out;
}

} // namespace dspark::llm
