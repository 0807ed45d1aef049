#include "frontends/checkpoint/ByteAlphabet.h"
#include "runtime/llm/tokenizer/Utf8.h"
#include <array>

namespace dspark::checkpoint {
namespace {

constexpr int kLetters = 0x100 + 68; // 68 bytes are not printable

// The byte of each letter, -1 where there is none.
constexpr std::array<int16_t, kLetters> makeTable() {
  std::array<int16_t, kLetters> table{};
  for (int16_t &entry : table)
    entry = -1;
  int next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    table[size_t(printable ? byte : next++)] = int16_t(byte);
  }
  return table;
}

} // namespace

std::optional<std::string> bytesFromAlphabet(std::string_view text) {
  static constexpr std::array<int16_t, kLetters> table = makeTable();
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const llm::CodePoint c = llm::decodeUtf8(text, i);
    if (c.value >= kLetters || table[c.value] < 0)
      return std::nullopt;
    out += char(table[c.value]);
    i += c.bytes;
  }
  return out;
}

} // namespace dspark::checkpoint
