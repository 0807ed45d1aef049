// The tokenizer inside a GGUF file (keys tokenizer.ggml.*) as a TokenizerSpec.
#pragma once
#include "frontends/checkpoint/Gguf.h"
#include "runtime/llm/tokenizer/TokenizerSpec.h"

namespace dspark::checkpoint {

/// Errors: a missing or ill-typed key, lists of different lengths, a model or pre-tokeniser that is not known
/// (named).
StatusOr<llm::TokenizerSpec> readGgufTokenizer(const GgufFile &file);

} // namespace dspark::checkpoint
