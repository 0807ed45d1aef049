// The tokenizer of a Hugging Face folder: tokenizer.json, or tokenizer.model, with what surrounds it
// (tokenizer_config.json, generation_config.json, chat_template.jinja).
#pragma once
#include "runtime/base/Status.h"
#include "runtime/llm/tokenizer/TokenizerSpec.h"
#include <string>

namespace dspark::checkpoint {

struct HuggingFaceTokenizer {
  llm::TokenizerSpec spec;
  std::string chatTemplate; // Jinja text; "" if the folder has none
};

/// Errors: NotFound if the folder has no tokenizer; those of readTokenizerJson, or of a file beside it, with
/// the file's name in front.
StatusOr<HuggingFaceTokenizer> readHuggingFaceTokenizer(const std::string &folder);

} // namespace dspark::checkpoint
