// Logits to the distribution that a token is drawn from: logit bias, penalties, temperature, top-k, top-p,
// min-p, typical, in this order (docs/sampling.md). Verification of drafts uses the same, row by row.
#pragma once
#include "runtime/llm/sampling/Candidates.h"
#include "runtime/llm/sampling/LogitScan.h"
#include "runtime/llm/sampling/Random.h"
#include "runtime/llm/sampling/SamplingParameters.h"
#include "runtime/llm/sampling/TokenCounts.h"

namespace dspark::llm {

/// Holds scratch memory only: one for any number of requests, one caller at a time.
class SamplingPipeline {
public:
  /// `counts` is read only where `parameters.penalizes()`. `parameters` must have passed check(). Errors,
  /// which leave `out` unspecified: NaN or plus infinity among the logits, no token left.
  Status run(const SamplingParameters &parameters, const TokenCounts &counts, std::span<const float> logits,
             Distribution &out);

private:
  std::span<const float> adjust(const SamplingParameters &parameters, const TokenCounts &counts,
                                std::span<const float> logits);
  double choose(const SamplingParameters &parameters, std::span<const float> logits);
  void chooseAbove(float floor);

  LogitScan scan;
  std::vector<float> adjusted, weights;
  std::vector<ScoredToken> best;
  std::vector<Candidate> candidates;
};

/// The token at `uniform` in [0, 1) of the cumulated probabilities, in the order of ids.
int32_t draw(const Distribution &distribution, double uniform);

} // namespace dspark::llm
