// GPT-2's printable alphabet for bytes: byte-level vocabularies write the bytes that are no printable Latin-1
// character as U+0100, U+0101 and so forth, in order
// (https://github.com/openai/gpt-2/blob/master/src/encoder.py).
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace dspark::checkpoint {

/// The bytes that `text` stands for; nothing if it holds a character outside the alphabet.
std::optional<std::string> bytesFromAlphabet(std::string_view text);

} // namespace dspark::checkpoint
