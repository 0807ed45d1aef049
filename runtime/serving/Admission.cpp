#include "runtime/serving/Admission.h"
#include <algorithm>

namespace dspark::serving {
namespace {

template <typename T> Status checkRange(const char *what, T value, T least, T most) {
  if (value >= least && value <= most)
    return Status::ok();
  return invalidArgument(std::string(what) + " is " + std::to_string(value) + ", it must be at least " +
                         std::to_string(least) + " and at most " + std::to_string(most));
}

Status checkTokens(const char *what, const std::vector<int32_t> &tokens, int32_t vocabulary) {
  for (size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i] < 0 || tokens[i] >= vocabulary)
      return invalidArgument(std::string(what) + " " + std::to_string(i) + " is " +
                             std::to_string(tokens[i]) + ", but the vocabulary has " +
                             std::to_string(vocabulary) + " tokens");
  return Status::ok();
}

Status checkStopStrings(const std::vector<std::string> &strings, const llm::Tokenizer *tokenizer) {
  if (!strings.empty() && !tokenizer)
    return invalidArgument("stop strings need a tokenizer, and the engine has none");
  DSPARK_RETURN_IF_ERROR(
      checkRange<size_t>("the number of stop strings", strings.size(), 0, kMostStopStrings));
  for (const std::string &string : strings)
    DSPARK_RETURN_IF_ERROR(
        checkRange<size_t>("the length of a stop string in bytes", string.size(), 1, kLongestStopString));
  return Status::ok();
}

} // namespace

StatusOr<int64_t> admissibleOutput(const Request &request, const llm::ModelFacts &facts,
                                   const llm::Tokenizer *tokenizer, int32_t mostChoices) {
  const int64_t prompt = int64_t(request.prompt.size());
  const int64_t cacheTokens = facts.pages * facts.pageSize;
  if (prompt == 0)
    return invalidArgument("the prompt has no tokens, it must have at least 1");
  if (prompt >= facts.contextLength)
    return invalidArgument("the prompt has " + std::to_string(prompt) + " tokens, the model's context is " +
                           std::to_string(facts.contextLength) + " with at least 1 of output");
  if (prompt > cacheTokens)
    return invalidArgument("the prompt has " + std::to_string(prompt) + " tokens, the whole cache holds " +
                           std::to_string(cacheTokens));
  DSPARK_RETURN_IF_ERROR(checkTokens("prompt token", request.prompt, facts.vocabulary));
  DSPARK_RETURN_IF_ERROR(checkTokens("stop token", request.stopTokens, facts.vocabulary));
  DSPARK_RETURN_IF_ERROR(checkRange("the number of choices", request.choices, 1, mostChoices));
  DSPARK_RETURN_IF_ERROR(checkRange<int64_t>("the number of output tokens", request.maxTokens, 1,
                                             std::numeric_limits<int64_t>::max()));
  DSPARK_RETURN_IF_ERROR(checkRange("the number of top log probabilities", request.topLogprobs, 0,
                                    std::min(kMostTopLogprobs, facts.vocabulary)));
  DSPARK_RETURN_IF_ERROR(checkStopStrings(request.stopStrings, tokenizer));
  DSPARK_RETURN_IF_ERROR(request.sampling.check(facts.vocabulary));
  // The last token's keys and values are never needed.
  return std::min({request.maxTokens, facts.contextLength - prompt, cacheTokens - prompt + 1});
}

} // namespace dspark::serving
