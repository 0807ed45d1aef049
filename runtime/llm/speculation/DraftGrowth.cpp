#include "runtime/llm/speculation/DraftGrowth.h"
#include "runtime/llm/speculation/Logistic.h"
#include <algorithm>
#include <cmath>
#include <string>

namespace dspark::llm {
namespace {

float largestProbability(std::span<const float> logits, float largest) {
  double sum = 0;
  for (float logit : logits)
    sum += std::exp(double(logit) - largest);
  return float(1 / sum);
}

} // namespace

Status checkVocabulary(int32_t draft, int32_t model) {
  return draft == model ? Status::ok()
                        : invalidArgument("the draft has a vocabulary of " + std::to_string(draft) +
                                          ", the model one of " + std::to_string(model));
}

Status DraftGrowth::extend(std::span<const float> logits, std::optional<float> confidence) {
  const auto largest = std::max_element(logits.begin(), logits.end());
  const float estimate = confidence ? *confidence : largestProbability(logits, *largest);
  if (!std::isfinite(estimate) || !std::isfinite(*largest))
    return {Code::Internal, "the draft's logits are not finite"};
  survival *= estimate;
  if (survival < leastSurvival) {
    isDone = true;
  } else if (!request->pipeline) {
    draft->tokens.push_back(int32_t(largest - logits.begin()));
  } else {
    DSPARK_ASSIGN_OR_RETURN(Distribution q, request->pipeline->distribution(logits, draft->tokens));
    draft->tokens.push_back(request->pipeline->draw(q, draft->tokens));
    draft->drawnFrom.push_back(std::move(q));
  }
  if (!isDone)
    draft->confidence.push_back(std::clamp(estimate, kLeastProbability, 1 - kLeastProbability));
  isDone |= int32_t(draft->tokens.size()) >= limit;
  const auto isCertain = [](const Distribution &q) { return q.tokens.size() == 1; };
  if (isDone && std::all_of(draft->drawnFrom.begin(), draft->drawnFrom.end(), isCertain))
    draft->drawnFrom.clear();
  return Status::ok();
}

} // namespace dspark::llm
