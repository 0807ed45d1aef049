// UTF-8 in both directions, strict: overlong forms, surrogates and code points above U+10FFFF are invalid.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace dspark::llm {

inline constexpr char32_t kInvalidCodePoint = 0xFFFFFFFF;

/// Whether a byte goes on with a character instead of starting one.
inline bool isContinuationByte(char byte) { return (uint8_t(byte) & 0xC0) == 0x80; }

/// The code point at text[at] and its length in bytes; kInvalidCodePoint and 1 where the bytes are not UTF-8.
struct CodePoint {
  char32_t value;
  uint32_t bytes;
};

inline CodePoint decodeUtf8(std::string_view text, size_t at) {
  constexpr CodePoint invalid{kInvalidCodePoint, 1};
  const auto byte = [&](size_t i) { return uint8_t(text[at + i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80)
    return {lead, 1};
  const uint32_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() - at < length)
    return invalid;
  char32_t value = lead & (0xFF >> (length + 1));
  for (uint32_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80)
      return invalid;
    value = value << 6 | (byte(i) & 0x3F);
  }
  constexpr char32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  if (value < least[length] || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF))
    return invalid;
  return {value, length};
}

inline void appendUtf8(std::string &out, char32_t c) {
  if (c < 0x80) {
    out += char(c);
  } else if (c < 0x800) {
    out += char(0xC0 | c >> 6);
    out += char(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    out += char(0xE0 | c >> 12);
    out += char(0x80 | (c >> 6 & 0x3F));
    out += char(0x80 | (c & 0x3F));
  } else {
    out += char(0xF0 | c >> 18);
    out += char(0x80 | (c >> 12 & 0x3F));
    out += char(0x80 | (c >> 6 & 0x3F));
    out += char(0x80 | (c & 0x3F));
  }
}

/// Where the first invalid byte is, or npos.
inline size_t findInvalidUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const CodePoint c = decodeUtf8(text, i);
    if (c.value == kInvalidCodePoint)
      return i;
    i += c.bytes;
  }
  return std::string_view::npos;
}

} // namespace dspark::llm
