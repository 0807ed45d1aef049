// Probabilities as logits, bounded: an estimate of 0 or 1 could never be corrected.
#pragma once
#include <algorithm>
#include <cmath>

namespace dspark::llm {

constexpr float kLeastProbability = 1e-4f;

inline float sigmoid(float z) { return 1 / (1 + std::exp(-z)); }

inline float logit(float probability) {
  const float p = std::clamp(probability, kLeastProbability, 1 - kLeastProbability);
  return std::log(p / (1 - p));
}

/// A probability moved by `by` logits.
inline float shifted(float probability, float by) {
  return std::clamp(sigmoid(logit(probability) + by), kLeastProbability, 1 - kLeastProbability);
}

} // namespace dspark::llm
