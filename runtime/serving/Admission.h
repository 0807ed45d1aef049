// What is refused before it costs anything: requests that are wrong in themselves, and those that can never
// fit.
#pragma once
#include "runtime/llm/model/ForwardModel.h"
#include "runtime/llm/tokenizer/Tokenizer.h"
#include "runtime/serving/Request.h"

namespace dspark::serving {

/// Most tokens of each choice's output: what the request wants, as far as the context and the whole cache
/// reach. Errors: InvalidArgument with the value and its limit. `tokenizer` may be null: no text, no stop
/// strings.
StatusOr<int64_t> admissibleOutput(const Request &request, const llm::ModelFacts &facts,
                                   const llm::Tokenizer *tokenizer, int32_t mostChoices);

} // namespace dspark::serving
