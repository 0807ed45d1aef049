#include "runtime/llm/speculation/AcceptanceEstimator.h"

namespace dspark::llm {
namespace {

constexpr float kUnseen = 0.7f; // acceptance expected of a drafter that never drafted: enough to be tried
// Offsets of logits: text moves acceptance by about one logit between sequences (0.5 to 0.73), confidences
// that were never calibrated are off by as much. Outcomes after which they have faded: a few paragraphs of a
// sequence; for all sequences three times that.
constexpr float kSequenceDeviation = 1, kSequenceHorizon = 100;
constexpr float kPositionDeviation = 1, kPositionHorizon = 300;
constexpr float kSequenceRate = 0.1f, kCommonRate = 0.05f; // of profiles, per draft
constexpr float kHalfLife = 32;                            // steps
constexpr float kCaution = 1;                              // standard deviations
const OnlineBias kNoBias(kSequenceDeviation, kSequenceHorizon);

} // namespace

void AcceptanceEstimator::Profile::add(const Estimates &estimates, float leastRate) {
  const float rate = std::max(leastRate, 1 / float(++drafts)); // a plain mean at first
  std::vector<float> beyond; // conditional, of positions that this draft does not reach
  for (size_t j = estimates.size(); j < survival.size(); ++j)
    beyond.push_back(conditional(j));
  float product = 1;
  for (size_t j = 0; j < estimates.size(); ++j) {
    product *= estimates[j];
    if (j == survival.size())
      survival.push_back(product);
    survival[j] += rate * (product - survival[j]);
  }
  if (estimates.empty())
    return;
  // Nothing is learned of them: what was known fades towards the position before.
  const float last = conditional(estimates.size() - 1);
  for (size_t i = 0; i < beyond.size(); ++i)
    survival[estimates.size() + i] =
        survival[estimates.size() + i - 1] * (beyond[i] + rate * (last - beyond[i]));
}

float AcceptanceEstimator::Profile::conditional(size_t position) const {
  if (survival.empty())
    return kUnseen;
  const size_t j = std::min(position, survival.size() - 1);
  return j == 0 ? survival[0] : std::min(survival[j] / std::max(survival[j - 1], kLeastProbability), 1.0f);
}

/// Before any correction.
float AcceptanceEstimator::base(const Draft &draft, size_t position) const {
  return draft.confidence.empty() ? table.estimate(draft.match, int32_t(position))
                                  : scaling.calibrated(draft.confidence[position], position);
}

/// With the correction that all sequences share.
float AcceptanceEstimator::common(float estimate, size_t position) const {
  return position < biases.size() ? biases[position].corrected(estimate) : estimate;
}

/// Its share of evidence that still counts, brought up to date when it is used.
AcceptanceEstimator::OfSequence &AcceptanceEstimator::ofSequence(SequenceId sequence) {
  OfSequence &own = sequences.try_emplace(sequence, OfSequence{kNoBias, profile, step}).first->second;
  own.bias = own.bias.faded(freshness(own));
  own.lastStep = step;
  return own;
}

float AcceptanceEstimator::freshness(const OfSequence &own) const {
  return std::exp2(float(own.lastStep - step) / kHalfLife);
}

OnlineBias AcceptanceEstimator::biasOf(SequenceId sequence) const {
  const auto own = sequences.find(sequence);
  return own == sequences.end() ? kNoBias : own->second.bias.faded(freshness(own->second));
}

Estimates AcceptanceEstimator::estimate(SequenceId sequence, const Draft &draft, bool isCautious) const {
  const OnlineBias bias = biasOf(sequence);
  const float caution = isCautious ? kCaution * bias.uncertainty() : 0;
  Estimates estimates;
  for (size_t j = 0; j < draft.tokens.size(); ++j)
    estimates.push_back(shifted(bias.corrected(common(base(draft, j), j)), -caution));
  return estimates;
}

Estimates AcceptanceEstimator::expected(SequenceId sequence, int32_t length, bool isCautious) const {
  const auto own = sequences.find(sequence);
  const float share = own == sequences.end() ? 0 : freshness(own->second);
  const OnlineBias bias = biasOf(sequence);
  const float caution = isCautious ? kCaution * bias.uncertainty() : 0;
  Estimates estimates;
  for (size_t j = 0; j < size_t(length); ++j) {
    float promised = profile.conditional(j);
    if (share > 0)
      promised += share * (own->second.profile.conditional(j) - promised);
    estimates.push_back(shifted(bias.corrected(common(promised, j)), -caution));
  }
  return estimates;
}

void AcceptanceEstimator::drafted(SequenceId sequence, const Draft &draft) {
  Estimates estimates;
  for (size_t j = 0; j < draft.tokens.size(); ++j)
    estimates.push_back(base(draft, j));
  ofSequence(sequence).profile.add(estimates, kSequenceRate);
  profile.add(estimates, kCommonRate);
}

void AcceptanceEstimator::learn(SequenceId sequence, const Draft &draft, const Verdict &verdict) {
  OnlineBias &own = ofSequence(sequence).bias;
  for (int32_t j = 0; j < verdict.judged; ++j) {
    const bool accepted = j < verdict.accepted;
    const float estimate = base(draft, size_t(j));
    own.learn(common(estimate, size_t(j)), accepted);
    if (draft.confidence.empty()) {
      table.learn(draft.match, j, accepted);
      continue;
    }
    biases.resize(std::max(biases.size(), size_t(j) + 1), OnlineBias(kPositionDeviation, kPositionHorizon));
    biases[size_t(j)].learn(estimate, accepted);
  }
}

} // namespace dspark::llm
