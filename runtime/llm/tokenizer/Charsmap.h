// SentencePiece's precompiled normalisation: a double-array trie (Darts) from UTF-8 strings to places in a
// list of zero-terminated replacements. Layout: u32 bytes of the trie, the trie's u32 units, the
// replacements.
#pragma once
#include "runtime/base/Status.h"
#include <string>
#include <string_view>

namespace dspark::llm {

/// Errors where the sizes in `table` do not fit it. Afterwards every access is checked, whatever the units
/// hold.
Status checkCharsmap(std::string_view table);

/// Replaces, from left to right, the longest key that starts at each place. `table` has been checked.
std::string applyCharsmap(std::string_view table, std::string_view text);

} // namespace dspark::llm
