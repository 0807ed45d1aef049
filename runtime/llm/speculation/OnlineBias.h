// A correction of predicted probabilities, learned while they are used: an offset of their logits, the mode
// of a logistic regression with a normal prior around 0, updated by one Newton step per outcome (a Kalman
// filter of one state). Evidence fades, so that the offset follows what changes.
#pragma once
#include "runtime/llm/speculation/Logistic.h"

namespace dspark::llm {

class OnlineBias {
public:
  /// `deviation` of the prior, in logits; `horizon`: outcomes after which evidence has faded to 1/e.
  OnlineBias(float deviation, float horizon)
      : priorPrecision(1 / (deviation * deviation)), keep(1 - 1 / horizon) {}

  float corrected(float probability) const { return shifted(probability, offset); }

  /// With a share of the evidence only.
  OnlineBias faded(float share) const {
    OnlineBias less = *this;
    less.offset *= share;
    less.evidence *= share;
    return less;
  }

  /// Standard deviation, in logits, that the evidence leaves.
  float uncertainty() const { return 1 / std::sqrt(evidence + priorPrecision); }

  /// `probability` is the one before correction.
  void learn(float probability, bool happened) {
    const float p = corrected(probability);
    evidence = keep * evidence + p * (1 - p);
    const float pull = offset * priorPrecision * (1 - keep); // the prior's share of one outcome
    offset += (float(happened) - p - pull) / (evidence + priorPrecision);
    offset = std::clamp(offset, -kLargest, kLargest);
  }

private:
  static constexpr float kLargest = 6; // logits

  float priorPrecision, keep;
  float offset = 0;
  float evidence = 0; // faded sum of p (1 - p): the precision that outcomes give
};

} // namespace dspark::llm
