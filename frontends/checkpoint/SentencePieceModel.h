// tokenizer.model: SentencePiece's ModelProto (https://github.com/google/sentencepiece,
// sentencepiece_model.proto), in protocol buffers' wire format.
#pragma once
#include "runtime/base/Status.h"
#include "runtime/llm/tokenizer/TokenizerSpec.h"
#include <string_view>

namespace dspark::checkpoint {

/// Errors: bytes that are no such message; Unsupported for models of words or characters.
StatusOr<llm::TokenizerSpec> readSentencePieceModel(std::string_view bytes);

} // namespace dspark::checkpoint
