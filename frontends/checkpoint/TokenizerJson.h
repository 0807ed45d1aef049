// The tokenizer of a Hugging Face folder (tokenizer.json) as a TokenizerSpec.
#pragma once
#include "runtime/base/Status.h"
#include "runtime/llm/tokenizer/TokenizerSpec.h"
#include <string_view>

namespace dspark::checkpoint {

/// Errors: text that is no such JSON, ids that leave gaps, a component or option that is not supported (by name).
StatusOr<llm::TokenizerSpec> readTokenizerJson(std::string_view json);

} // namespace dspark::checkpoint
