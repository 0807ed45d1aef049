#include "runtime/llm/sampling/SamplingParameters.h"
#include <cmath>
#include <sstream>
#include <unordered_set>

namespace dspark::llm {
namespace {

struct Range {
  const char *name;
  float value, least, most;
  bool leastAllowed = true;
};

Status checkRange(const Range &range) {
  const bool aboveLeast = range.leastAllowed ? range.value >= range.least : range.value > range.least;
  if (aboveLeast && range.value <= range.most) // false for NaN
    return Status::ok();
  std::ostringstream text;
  text << range.name << " is " << range.value << ", it must be "
       << (range.leastAllowed ? "at least " : "above ") << range.least << " and at most " << range.most;
  return invalidArgument(text.str());
}

Status checkBias(const std::vector<LogitBias> &biases, int32_t vocabulary) {
  std::unordered_set<int32_t> seen;
  for (const auto &[token, bias] : biases) {
    if (token < 0 || token >= vocabulary)
      return invalidArgument("logit bias for token " + std::to_string(token) + ", but the vocabulary has " +
                             std::to_string(vocabulary) + " tokens");
    if (!seen.insert(token).second)
      return invalidArgument("logit bias for token " + std::to_string(token) + " is given twice");
    if (std::isinf(bias) && bias < 0)
      continue;
    const std::string name = "logit bias of token " + std::to_string(token);
    DSPARK_RETURN_IF_ERROR(checkRange({name.c_str(), bias, -100, 100}));
  }
  return Status::ok();
}

} // namespace

Status SamplingParameters::check(int32_t vocabulary) const {
  for (const Range &range : {
           Range{"temperature", temperature, 0, 100},
           Range{"top-p", topP, 0, 1, /*leastAllowed=*/false},
           Range{"min-p", minP, 0, 1},
           Range{"typical-p", typicalP, 0, 1, /*leastAllowed=*/false},
           Range{"repetition penalty", repetitionPenalty, 0, 100, /*leastAllowed=*/false},
           Range{"presence penalty", presencePenalty, -100, 100},
           Range{"frequency penalty", frequencyPenalty, -100, 100},
       })
    DSPARK_RETURN_IF_ERROR(checkRange(range));
  if (topK < 0)
    return invalidArgument("top-k is " + std::to_string(topK) + ", it must be at least 0 (0: all tokens)");
  return checkBias(logitBias, vocabulary);
}

} // namespace dspark::llm
