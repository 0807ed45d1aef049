#include "runtime/llm/sampling/Logprobs.h"
#include "runtime/llm/sampling/LogitScan.h"
#include <algorithm>
#include <cmath>

namespace dspark::llm {
namespace {

void mostProbableFirst(std::vector<TokenLogprob> &tokens, size_t count) {
  const auto end = tokens.begin() + int64_t(std::min(count, tokens.size()));
  std::partial_sort(tokens.begin(), end, tokens.end(), [](const TokenLogprob &a, const TokenLogprob &b) {
    return a.logprob != b.logprob ? a.logprob > b.logprob : a.token < b.token;
  });
  tokens.erase(end, tokens.end());
}

} // namespace

StatusOr<Logprobs> rawLogprobs(std::span<const float> logits, int32_t chosen, int32_t count) {
  LogitScan scan;
  DSPARK_RETURN_IF_ERROR(scan.read(logits));
  std::vector<float> weights(logits.size());
  const double logSum =
      double(scan.largest()) + std::log(expWeights(logits, scan.largest(), /*temperature=*/1, weights));
  const auto logprob = [&](int32_t token) {
    return TokenLogprob{token, float(double(logits[size_t(token)]) - logSum)};
  };
  Logprobs result;
  result.chosen = logprob(chosen);
  std::vector<ScoredToken> best;
  if (count > 0)
    scan.top(count, best);
  for (const ScoredToken &scored : best)
    result.top.push_back(logprob(scored.token));
  mostProbableFirst(result.top, size_t(count));
  return result;
}

Logprobs processedLogprobs(const Distribution &distribution, int32_t chosen, int32_t count) {
  Logprobs result;
  const auto place = std::lower_bound(distribution.tokens.begin(), distribution.tokens.end(), chosen);
  result.chosen = {chosen, std::log(distribution.probabilities[size_t(place - distribution.tokens.begin())])};
  if (count <= 0)
    return result;
  for (size_t i = 0; i < distribution.tokens.size(); ++i)
    result.top.push_back({distribution.tokens[i], std::log(distribution.probabilities[i])});
  mostProbableFirst(result.top, size_t(count));
  return result;
}

} // namespace dspark::llm
