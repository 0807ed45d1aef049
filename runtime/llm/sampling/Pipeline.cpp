#include "runtime/llm/sampling/Pipeline.h"
#include <algorithm>

namespace dspark::llm {

// Keskar et al. 2019 for repetition (divide what is above 0, multiply what is below); presence and frequency
// as the OpenAI API defines them.
std::span<const float> SamplingPipeline::adjust(const SamplingParameters &parameters,
                                                const TokenCounts &counts, std::span<const float> logits) {
  if (!parameters.penalizes() && parameters.logitBias.empty())
    return logits;
  adjusted.assign(logits.begin(), logits.end());
  for (const auto &[token, bias] : parameters.logitBias)
    adjusted[size_t(token)] += bias;
  if (!parameters.penalizes())
    return adjusted;
  for (const auto &[token, inPrompt, outputs] : counts.entries()) {
    float &logit = adjusted[size_t(token)];
    if (inPrompt || outputs > 0)
      logit = logit > 0 ? logit / parameters.repetitionPenalty : logit * parameters.repetitionPenalty;
    if (outputs > 0)
      logit -= parameters.presencePenalty + parameters.frequencyPenalty * float(outputs);
  }
  return adjusted;
}

// Without a branch per token: half of them may pass.
void SamplingPipeline::chooseAbove(float floor) {
  candidates.resize(weights.size() + 1);
  size_t chosen = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    candidates[chosen] = {int32_t(i), weights[i]};
    chosen += size_t(weights[i] >= floor && weights[i] > 0);
  }
  candidates.resize(chosen);
}

// Fills the candidates and returns the weight of all that top-k leaves. What top-p and min-p will drop anyway
// need not become one: all tokens lighter than (1 - p) / vocabulary together miss the mass p allows to drop
// (halved, so that rounding cannot matter), and the heaviest token weighs 1. Both cuts keep the heaviest, so
// min-p may come early.
double SamplingPipeline::choose(const SamplingParameters &parameters, std::span<const float> logits) {
  candidates.clear();
  if (parameters.topK > 0 && size_t(parameters.topK) < logits.size()) {
    scan.top(parameters.topK, best);
    double total = 0;
    for (const auto &[token, logit] : best) {
      const float weight = expNegative((logit - scan.largest()) / parameters.temperature);
      total += double(weight);
      if (weight >= parameters.minP && weight > 0)
        candidates.push_back({token, weight});
    }
    return total;
  }
  weights.resize(logits.size());
  const double total = expWeights(logits, scan.largest(), parameters.temperature, weights);
  const double tail = total * (1 - double(parameters.topP)) / double(logits.size());
  chooseAbove(std::max(parameters.minP, float(tail / 2)));
  return total;
}

Status SamplingPipeline::run(const SamplingParameters &parameters, const TokenCounts &counts,
                             std::span<const float> logits, Distribution &out) {
  const std::span<const float> row = adjust(parameters, counts, logits);
  DSPARK_RETURN_IF_ERROR(scan.read(row));
  if (parameters.greedy()) {
    out.tokens.assign(1, scan.argmax());
    out.probabilities.assign(1, 1.f);
    return Status::ok();
  }
  const double total = choose(parameters, row);
  if (parameters.topP < 1)
    keepNucleus(candidates, double(parameters.topP) * total);
  if (parameters.typicalP < 1)
    keepTypical(candidates, double(parameters.typicalP));
  normalize(candidates, out);
  return Status::ok();
}

int32_t draw(const Distribution &distribution, double uniform) {
  double sum = 0;
  for (size_t i = 0; i < distribution.tokens.size(); ++i) {
    sum += double(distribution.probabilities[i]);
    if (uniform < sum)
      return distribution.tokens[i];
  }
  return distribution.tokens.back(); // the sum may round below 1
}

} // namespace dspark::llm
