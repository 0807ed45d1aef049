#include "runtime/llm/tokenizer/Characters.h"
#include <cstdlib>
#include <memory>
#include <utf8proc.h>

namespace dspark::llm {
namespace {

utf8proc_category_t category(char32_t c) { return utf8proc_category(utf8proc_int32_t(c)); }

bool isBetween(utf8proc_category_t c, utf8proc_category_t first, utf8proc_category_t last) {
  return c >= first && c <= last;
}

} // namespace

bool isWhiteSpace(char32_t c) {
  return c == ' ' || (c >= '\t' && c <= '\r') || c == 0x85 ||
         isBetween(category(c), UTF8PROC_CATEGORY_ZS, UTF8PROC_CATEGORY_ZP);
}

bool isControl(char32_t c) {
  if (c == '\t' || c == '\n' || c == '\r')
    return false;
  const utf8proc_category_t kind = category(c);
  return kind == UTF8PROC_CATEGORY_CC || kind == UTF8PROC_CATEGORY_CF || kind == UTF8PROC_CATEGORY_CN ||
         kind == UTF8PROC_CATEGORY_CO;
}

bool isPunctuation(char32_t c) {
  if (c < 0x80)
    return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126);
  return isBetween(category(c), UTF8PROC_CATEGORY_PC, UTF8PROC_CATEGORY_PO);
}

bool isWordCharacter(char32_t c) {
  const utf8proc_category_t kind = category(c);
  return isBetween(kind, UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_NO) || kind == UTF8PROC_CATEGORY_PC;
}

bool isNonspacingMark(char32_t c) { return category(c) == UTF8PROC_CATEGORY_MN; }

bool isMark(char32_t c) { return isBetween(category(c), UTF8PROC_CATEGORY_MN, UTF8PROC_CATEGORY_ME); }

bool isChineseCharacter(char32_t c) {
  constexpr struct {
    char32_t first, last;
  } blocks[] = {{0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F},
                {0x2B740, 0x2B81F}, {0x2B820, 0x2CEAF}, {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F}};
  for (const auto &block : blocks)
    if (c >= block.first && c <= block.last)
      return true;
  return false;
}

char32_t toLower(char32_t c) { return char32_t(utf8proc_tolower(utf8proc_int32_t(c))); }

std::string normalize(std::string_view text, Form form) {
  int options = UTF8PROC_STABLE;
  options |= form == Form::Nfc || form == Form::Nfkc ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  options |= form == Form::Nfkc || form == Form::Nfkd ? UTF8PROC_COMPAT : 0;
  utf8proc_uint8_t *mapped = nullptr;
  const utf8proc_ssize_t size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t *>(text.data()), utf8proc_ssize_t(text.size()),
                   &mapped, utf8proc_option_t(options));
  std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(mapped, &std::free);
  return size < 0 ? std::string(text) : std::string(reinterpret_cast<char *>(mapped), size_t(size));
}

} // namespace dspark::llm
