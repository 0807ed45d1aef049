#include "runtime/llm/sampling/Candidates.h"
#include <algorithm>
#include <bit>
#include <cmath>

namespace dspark::llm {
namespace {

double weightOf(const std::vector<Candidate> &candidates) {
  double sum = 0;
  for (const Candidate &candidate : candidates)
    sum += double(candidate.weight);
  return sum;
}

constexpr size_t kSortAtMost = 512; // below, counting costs more than it saves
constexpr int kBucketShift = 18;    // ranks are the bits of positive floats: 32 buckets for each power of two

// The bucket of ranks in which the mass is reached, and what those before it weigh.
struct Border {
  uint32_t bucket = 0;
  double before = 0;
};

Border findBorder(const std::vector<Candidate> &candidates, double mass) {
  std::vector<double> weights(1u << (32 - kBucketShift));
  for (const Candidate &candidate : candidates)
    weights[candidate.rank >> kBucketShift] += double(candidate.weight);
  Border border;
  while (border.bucket + 1 < weights.size() && border.before + weights[border.bucket] < mass)
    border.before += weights[border.bucket++];
  return border;
}

// Keeps the fewest of lowest rank that have `mass` (of equal ranks, the lowest ids): whole buckets, and of
// the one in which the mass is reached the first in order. Only that one is sorted.
void keepMass(std::vector<Candidate> &candidates, double mass) {
  std::vector<Candidate> sorted;
  double sum = 0;
  if (candidates.size() <= kSortAtMost) {
    sorted.swap(candidates);
  } else {
    const Border border = findBorder(candidates, mass);
    sum = border.before;
    size_t kept = 0;
    for (const Candidate &candidate : candidates) {
      const uint32_t bucket = candidate.rank >> kBucketShift;
      if (bucket == border.bucket)
        sorted.push_back(candidate);
      else if (bucket < border.bucket)
        candidates[kept++] = candidate;
    }
    candidates.resize(kept);
  }
  std::sort(sorted.begin(), sorted.end(), [](const Candidate &a, const Candidate &b) {
    return a.rank != b.rank ? a.rank < b.rank : a.token < b.token;
  });
  for (const Candidate &candidate : sorted) {
    candidates.push_back(candidate);
    if ((sum += double(candidate.weight)) >= mass)
      return;
  }
}

} // namespace

// Positive floats are ordered as their bits are.
void keepNucleus(std::vector<Candidate> &candidates, double mass) {
  for (Candidate &candidate : candidates)
    candidate.rank = ~std::bit_cast<uint32_t>(candidate.weight);
  keepMass(candidates, mass);
}

void keepTypical(std::vector<Candidate> &candidates, double p) {
  const double total = weightOf(candidates);
  std::vector<double> surprises(candidates.size());
  double entropy = 0;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const double probability = double(candidates[i].weight) / total;
    surprises[i] = -std::log(probability);
    entropy += probability * surprises[i];
  }
  for (size_t i = 0; i < candidates.size(); ++i)
    candidates[i].rank = std::bit_cast<uint32_t>(std::abs(float(surprises[i] - entropy)));
  keepMass(candidates, p * total);
}

void normalize(std::vector<Candidate> &candidates, Distribution &out) {
  const auto byToken = [](const Candidate &a, const Candidate &b) { return a.token < b.token; };
  if (!std::is_sorted(candidates.begin(), candidates.end(), byToken))
    std::sort(candidates.begin(), candidates.end(), byToken);
  const double scale = 1 / weightOf(candidates);
  out.tokens.resize(candidates.size());
  out.probabilities.resize(candidates.size());
  for (size_t i = 0; i < candidates.size(); ++i) {
    out.tokens[i] = candidates[i].token;
    out.probabilities[i] = float(double(candidates[i].weight) * scale);
  }
}

} // namespace dspark::llm
