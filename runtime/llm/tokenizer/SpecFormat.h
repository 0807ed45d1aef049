// A tokenizer as bytes: the TOKENIZER section of a plan. CBOR (RFC 8949) of one map; strings are byte
// strings, since the texts of byte-level tokens are no UTF-8.
#pragma once
#include "runtime/base/Status.h"
#include "runtime/llm/tokenizer/TokenizerSpec.h"
#include <cstddef>
#include <span>

namespace dspark::llm {

std::vector<std::byte> encodeTokenizer(const TokenizerSpec &spec);
/// Errors: CorruptFile with what was found and expected. Whether the ids and patterns make a tokenizer is
/// Tokenizer::build()'s to check.
StatusOr<TokenizerSpec> decodeTokenizer(std::span<const std::byte> bytes);

} // namespace dspark::llm
