#include "runtime/llm/speculation/Verification.h"
#include <algorithm>

namespace dspark::llm {
namespace {

// Below this the residual is rounding: p and q are sums of f32, each probability off by up to 2^-24 of
// itself.
constexpr double kLeastResidual = 1e-8;

struct RowVerdict {
  bool accepted;
  int32_t token;
};

StatusOr<RowVerdict> judgeDeterministic(int32_t draft, VerifiedSequence &sequence, size_t row) {
  DSPARK_ASSIGN_OR_RETURN(const int32_t token, sequence.drawn(row));
  return RowVerdict{token == draft, token};
}

StatusOr<RowVerdict> judgeDrawn(int32_t draft, const Distribution &q, VerifiedSequence &sequence,
                                size_t row) {
  DSPARK_ASSIGN_OR_RETURN(const Distribution *p, sequence.distribution(row));
  // u < min(1, p/q) without the division: u < 1 and q > 0.
  if (sequence.acceptance(row) * probabilityOf(q, draft) < probabilityOf(*p, draft))
    return RowVerdict{true, draft};
  return RowVerdict{false, sequence.drawnFrom(residual(*p, q), row)};
}

} // namespace

StatusOr<Verdict> verify(const Draft &draft, size_t length, VerifiedSequence &sequence) {
  Verdict verdict;
  const auto take = [&](int32_t token) {
    ++verdict.committed;
    verdict.ended = !sequence.commit(token);
    return !verdict.ended;
  };
  length = std::min(length, draft.tokens.size());
  for (size_t row = 0; row < length; ++row) {
    const int32_t token = draft.tokens[row];
    DSPARK_ASSIGN_OR_RETURN(const RowVerdict judged,
                            draft.isDeterministic() ? judgeDeterministic(token, sequence, row)
                                                    : judgeDrawn(token, draft.drawnFrom[row], sequence, row));
    ++verdict.judged;
    verdict.accepted += judged.accepted;
    if (!take(judged.token) || !judged.accepted)
      return verdict;
  }
  DSPARK_ASSIGN_OR_RETURN(const int32_t next, sequence.drawn(length));
  take(next);
  return verdict;
}

Distribution residual(const Distribution &p, const Distribution &q) {
  Distribution rest;
  double sum = 0;
  size_t j = 0;
  for (size_t i = 0; i < p.tokens.size(); ++i) {
    while (j < q.tokens.size() && q.tokens[j] < p.tokens[i])
      ++j;
    const bool shared = j < q.tokens.size() && q.tokens[j] == p.tokens[i];
    const float left = p.probabilities[i] - (shared ? q.probabilities[j] : 0.0f);
    if (left <= 0)
      continue;
    rest.tokens.push_back(p.tokens[i]);
    rest.probabilities.push_back(left);
    sum += left;
  }
  if (sum <= kLeastResidual)
    return p;
  for (float &probability : rest.probabilities)
    probability = float(probability / sum);
  return rest;
}

float probabilityOf(const Distribution &distribution, int32_t token) {
  const auto at = std::lower_bound(distribution.tokens.begin(), distribution.tokens.end(), token);
  return at == distribution.tokens.end() || *at != token
             ? 0.0f
             : distribution.probabilities[size_t(at - distribution.tokens.begin())];
}

} // namespace dspark::llm
