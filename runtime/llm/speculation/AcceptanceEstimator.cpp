#include "runtime/llm/speculation/AcceptanceEstimator.h"

namespace dspark::llm {
namespace {

constexpr float kUnseen = 0.7f; // acceptance expected of a drafter that never drafted: enough to be tried
// Offsets of logits: text moves acceptance by about one logit between sequences (0.5 to 0.73), a fitted
// calibration is off by less. Outcomes after which they have faded: a few paragraphs of a sequence.
constexpr float kSequenceDeviation = 1, kSequenceHorizon = 100;
constexpr float kPositionDeviation = 0.5f, kPositionHorizon = 1000;
constexpr float kSequenceRate = 0.1f, kCommonRate = 0.02f; // of profiles, per draft
constexpr float kCaution = 1;                              // standard deviations
const OnlineBias kNoBias(kSequenceDeviation, kSequenceHorizon);

} // namespace

void AcceptanceEstimator::Profile::add(const Estimates &estimates, float leastRate) {
  const float rate = std::max(leastRate, 1 / float(++drafts)); // a plain mean at first
  float product = 1;
  for (size_t j = 0; j < estimates.size(); ++j) {
    product *= estimates[j];
    if (j == survival.size())
      survival.push_back(product);
    survival[j] += rate * (product - survival[j]);
  }
  // Positions that this draft did not reach keep their ratio to the last that it did.
  for (size_t j = estimates.size(); j > 0 && j < survival.size(); ++j)
    survival[j] = std::min(survival[j], survival[j - 1]);
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
float AcceptanceEstimator::common(const Draft &draft, size_t position) const {
  const float estimate = base(draft, position);
  return draft.confidence.empty() || position >= biases.size() ? estimate
                                                               : biases[position].corrected(estimate);
}

Estimates AcceptanceEstimator::estimate(SequenceId sequence, const Draft &draft, bool isCautious) const {
  const auto own = sequences.find(sequence);
  const OnlineBias bias = own == sequences.end() ? kNoBias : own->second.bias;
  Estimates estimates;
  for (size_t j = 0; j < draft.tokens.size(); ++j)
    estimates.push_back(
        shifted(bias.corrected(common(draft, j)), isCautious ? -kCaution * bias.uncertainty() : 0));
  return estimates;
}

Estimates AcceptanceEstimator::expected(SequenceId sequence, int32_t length, bool isCautious) const {
  const auto own = sequences.find(sequence);
  const bool isKnown = own != sequences.end() && !own->second.profile.survival.empty();
  const Profile &promised = isKnown ? own->second.profile : profile; // holds corrected estimates
  const float caution = kCaution * (own == sequences.end() ? kNoBias : own->second.bias).uncertainty();
  Estimates estimates;
  for (int32_t j = 0; j < length; ++j)
    estimates.push_back(shifted(promised.conditional(size_t(j)), isCautious ? -caution : 0));
  return estimates;
}

void AcceptanceEstimator::drafted(SequenceId sequence, const Estimates &estimates) {
  OfSequence &own = sequences.try_emplace(sequence, OfSequence{kNoBias, profile}).first->second;
  own.profile.add(estimates, kSequenceRate);
  profile.add(estimates, kCommonRate);
}

void AcceptanceEstimator::learn(SequenceId sequence, const Draft &draft, const Verdict &verdict) {
  OnlineBias &own = sequences.try_emplace(sequence, OfSequence{kNoBias, profile}).first->second.bias;
  for (int32_t j = 0; j < verdict.judged; ++j) {
    const bool accepted = j < verdict.accepted;
    own.learn(common(draft, size_t(j)), accepted);
    if (draft.confidence.empty()) {
      table.learn(draft.match, j, accepted);
      continue;
    }
    biases.resize(std::max(biases.size(), size_t(j) + 1), OnlineBias(kPositionDeviation, kPositionHorizon));
    biases[size_t(j)].learn(base(draft, size_t(j)), accepted);
  }
}

} // namespace dspark::llm
