// What one drafter's drafts are worth: the probability that each token is accepted if those before it are,
// from the drafter's own confidence (calibrated) or from history, corrected by what verification says while
// it runs, for the drafter as a whole and for each sequence.
#pragma once
#include "runtime/llm/speculation/AcceptanceTable.h"
#include "runtime/llm/speculation/OnlineBias.h"
#include "runtime/llm/speculation/PrefixScheduler.h"
#include "runtime/llm/speculation/TemperatureScaling.h"
#include "runtime/llm/speculation/Verification.h"
#include <unordered_map>

namespace dspark::llm {

class AcceptanceEstimator {
public:
  /// `scaling`: fitted to the drafter's confidences, or all 1.
  explicit AcceptanceEstimator(TemperatureScaling scaling = {}) : scaling(std::move(scaling)) {}

  /// Of a draft that was made. `isCautious`: the lower end of what is likely, one standard deviation down.
  Estimates estimate(SequenceId sequence, const Draft &draft, bool isCautious = false) const;

  /// Of a draft of `length` tokens that has not been made: from survival in earlier drafts of the sequence,
  /// or of all if it has none.
  Estimates expected(SequenceId sequence, int32_t length, bool isCautious = false) const;

  /// A draft was made; whether it was verified or not, what it promised is what to expect of the next.
  void drafted(SequenceId sequence, const Draft &draft);

  /// What verification said of the draft.
  void learn(SequenceId sequence, const Draft &draft, const Verdict &verdict);

  /// A step has passed. What is known of a sequence alone halves in 32 steps without a draft.
  void nextStep() { ++step; }

  void forget(SequenceId sequence) { sequences.erase(sequence); }

  /// Learned acceptance of the first token of drafts without confidences, by their match.
  float ofMatch(int32_t match) const { return table.estimate(match, 0); }

private:
  /// Mean survival by position before corrections, faded.
  struct Profile {
    std::vector<float> survival;
    int64_t drafts = 0;
    void add(const Estimates &estimates, float leastRate);
    float conditional(size_t position) const;
  };
  struct OfSequence {
    OnlineBias bias;
    Profile profile;
    int64_t lastStep = 0; // that drafted or learned
  };

  OfSequence &ofSequence(SequenceId sequence);
  float freshness(const OfSequence &own) const;
  OnlineBias biasOf(SequenceId sequence) const;
  float base(const Draft &draft, size_t position) const;
  float common(float estimate, size_t position) const;

  TemperatureScaling scaling;
  AcceptanceTable table;
  std::vector<OnlineBias> biases; // by position; only drafts with confidences teach them
  Profile profile;
  int64_t step = 0;
  std::unordered_map<SequenceId, OfSequence> sequences;
};

} // namespace dspark::llm
