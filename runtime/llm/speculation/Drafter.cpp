#include "runtime/llm/speculation/Drafter.h"
#include <algorithm>
#include <cmath>
#include <string>

namespace dspark::llm {
namespace {

// Of 2^17 probabilities rounded to f32, each by at most 2^-24 of itself, plus a sum kept in f32 by its maker
// (2^17 * 2^-24 of the sum): below 1e-2.
constexpr double kSumTolerance = 1e-2;

Status checkDistribution(const Distribution &distribution, int32_t drawn, int32_t vocabulary,
                         const std::string &where) {
  if (distribution.tokens.size() != distribution.probabilities.size())
    return invalidArgument(where + " has " + std::to_string(distribution.tokens.size()) + " tokens but " +
                           std::to_string(distribution.probabilities.size()) + " probabilities");
  double sum = 0;
  int32_t previous = -1;
  bool holdsDrawn = false;
  for (size_t i = 0; i < distribution.tokens.size(); ++i) {
    const int32_t token = distribution.tokens[i];
    const float probability = distribution.probabilities[i];
    if (token <= previous || token >= vocabulary)
      return invalidArgument(where + " has token " + std::to_string(token) +
                             ", expected ascending tokens below " + std::to_string(vocabulary));
    if (!std::isfinite(probability) || probability <= 0)
      return invalidArgument(where + " gives token " + std::to_string(token) + " the probability " +
                             std::to_string(probability));
    previous = token;
    sum += probability;
    holdsDrawn |= token == drawn;
  }
  if (std::abs(sum - 1) > kSumTolerance)
    return invalidArgument(where + " sums to " + std::to_string(sum));
  if (!holdsDrawn)
    return invalidArgument(where + " gives the drawn token " + std::to_string(drawn) + " no probability");
  return Status::ok();
}

} // namespace

Status checkDraft(const Draft &draft, int32_t limit, int32_t vocabulary) {
  const size_t count = draft.tokens.size();
  if (count > size_t(std::max(limit, 0)))
    return invalidArgument("a draft has " + std::to_string(count) + " tokens, limit " +
                           std::to_string(limit));
  if (!draft.drawnFrom.empty() && draft.drawnFrom.size() != count)
    return invalidArgument("a draft of " + std::to_string(count) + " tokens has " +
                           std::to_string(draft.drawnFrom.size()) + " distributions");
  if (!draft.confidence.empty() && draft.confidence.size() != count)
    return invalidArgument("a draft of " + std::to_string(count) + " tokens has " +
                           std::to_string(draft.confidence.size()) + " confidences");
  for (int32_t token : draft.tokens)
    if (token < 0 || token >= vocabulary)
      return invalidArgument("a draft has token " + std::to_string(token) + " of a vocabulary of " +
                             std::to_string(vocabulary));
  for (float confidence : draft.confidence)
    if (!(confidence > 0 && confidence < 1))
      return invalidArgument("a draft has confidence " + std::to_string(confidence) +
                             ", expected within (0, 1)");
  for (size_t i = 0; i < draft.drawnFrom.size(); ++i)
    DSPARK_RETURN_IF_ERROR(checkDistribution(draft.drawnFrom[i], draft.tokens[i], vocabulary,
                                             "distribution of draft token " + std::to_string(i)));
  return Status::ok();
}

} // namespace dspark::llm
