// Speculative decoding as the engine sees it: drafters, what is known of them, and the decision, step by
// step, whether to draft, by which drafter, how long, and how many drafts of each sequence to verify. Between
// plan and learn the engine runs the model on each sequence's next row and the drafts to verify, and calls
// verify (Verification.h) on each.
//
// Verified output is the model's own, whatever is decided here (docs/speculation.md says why for each kind of
// draft), and decisions are reproducible: a function of the calls and of the times that are passed in.
#pragma once
#include "runtime/llm/speculation/AcceptanceEstimator.h"
#include "runtime/llm/speculation/CostTable.h"
#include "runtime/llm/speculation/DraftChoice.h"
#include "runtime/llm/speculation/Drafter.h"
#include "runtime/llm/speculation/SpeculationLedger.h"
#include "runtime/llm/speculation/SpeculationStatistics.h"
#include "runtime/llm/speculation/Verification.h"
#include <memory>
#include <optional>
#include <unordered_set>

namespace dspark::llm {

struct SpeculationOptions {
  enum class Admission {
    EarlyStop,   // by this step's estimates, in order of survival, until one does not pay
    StaleBudget, // as many as earlier steps' estimates made best, by this step's survival: the number of rows
                 // is known before drafting, and stairs in the cost table do not matter
    Everything,  // all drafts that there are, always: what the others are compared with
  } admission = Admission::EarlyStop;
  double lossShare = 0.01;    // of all time that each drafter may lose to plain decoding, to find out
  double leastGain = 0.02;    // predicted gain over plain decoding below which nothing is drafted
  int64_t longContext = 8192; // tokens from which on estimates are taken at their lower end
};

/// A drafter and what was measured of it.
struct SpeculationSource {
  std::unique_ptr<Drafter> drafter;
  std::optional<CostTable> cost; // of propose; needed unless the drafter is free
  double backlogSeconds = 0;     // of a token of backlog
  TemperatureScaling scaling;    // of its confidences
};

/// A sequence that decodes in the coming step.
struct DecodingState {
  SequenceId sequence = 0;
  int64_t length = 0; // committed tokens
  int32_t limit = 0;  // most drafts that make sense: pages, context, tokens left to emit less one
  const DraftPipeline *pipeline = nullptr; // null: greedy drafts
  std::span<const int32_t> pages = {};     // as DraftRequest has them
};

/// What else is in the step.
struct StepLoad {
  int64_t otherRows = 0; // chunks of prompts
  int64_t room = 0;      // most drafts of all sequences together that the batch still takes
};

struct PlannedDraft {
  Draft draft;
  int32_t length = 0;  // drafts to verify, from the first on; the others are not looked at
  int source = -1;     // index; -1: none
  double expected = 0; // tokens that are expected to be accepted
};

struct StepTimes {
  double draftSeconds = 0;  // of plan
  double verifySeconds = 0; // of the model's step and the sampling
  int32_t drafts = -1;      // that were verified, where pages allowed fewer than planned; -1: as planned
};

/// One caller at a time, the engine's thread.
class Speculation {
public:
  /// `steps`: measured steps of the model. Errors: a drafter that is not free without a table.
  static StatusOr<std::unique_ptr<Speculation>> create(int32_t vocabulary, CostTable steps,
                                                       std::vector<SpeculationSource> sources,
                                                       SpeculationOptions options = {});

  /// The life of a sequence, as Drafter has it: begin, append of the prompt and of all that is committed,
  /// forget. No errors: a drafter that has one is not asked again for that sequence.
  void begin(SequenceId sequence);
  void append(SequenceId sequence, std::span<const int32_t> tokens);
  void truncate(SequenceId sequence, int64_t length);
  void forget(SequenceId sequence);

  /// Drafts for each of the step's decoding sequences (each once), with the number to verify; valid until the
  /// next call.
  std::span<const PlannedDraft> plan(std::span<const DecodingState> states, const StepLoad &load);

  /// What came of the plan, in its order. A sequence that failed gives a verdict of nothing. A step that was
  /// not run is not learned from: the next plan forgets it.
  void learn(std::span<const Verdict> verdicts, const StepTimes &times);

  /// The longest draft that needs room in the target's pages before it is made; 0: none does.
  int32_t longestInTargetPages() const;

  const SpeculationStatistics &statistics() const { return counts; }
  const CostTable &steps() const { return stepCost; }
  /// Of all drafters.
  int32_t longestDraft() const;

private:
  struct Source {
    Source(SpeculationSource given, double lossShare)
        : given(std::move(given)), estimator(this->given.scaling), ledger(lossShare) {}
    SpeculationSource given;
    AcceptanceEstimator estimator;
    SpeculationLedger ledger;
    std::unordered_set<SequenceId> refused; // it had an error for them
    int failures = 0;                       // of propose in a row
    int64_t unusedSteps = 0;                // in a row
    int64_t probeAfter = 0;                 // as many of those
    bool isBroken() const;
  };

  Speculation(int32_t vocabulary, CostTable steps, std::vector<SpeculationSource> sources,
              SpeculationOptions options);
  void refuse(Source &source, SequenceId sequence, const Status &why);
  bool isLong(const DecodingState &state) const { return state.length > options.longContext; }
  int32_t limitOf(const Source &source, size_t state) const;
  DraftRequest request(size_t state, int32_t limit) const;
  double stepSeconds(int32_t drafts) const;
  StepSeconds verifySeconds() const;
  bool propose(size_t source, std::span<const DraftRequest> requests, std::span<const size_t> of);
  void probe();
  Estimates estimate(size_t state) const;
  std::vector<Estimates> draftFree();
  std::vector<DraftOption> draftOptions() const;
  void draftByChoice(const std::vector<DraftOption> &draftOptions, std::vector<Estimates> &estimates,
                     const StepSeconds &verify);
  Schedule schedule(std::span<const Estimates> estimates, const StepSeconds &verify) const;
  void verifyFirst(size_t state, int32_t length, const Estimates &estimates);
  void learnCosts(const StepTimes &times);
  void settle(std::span<const Verdict> verdicts, const StepTimes &times);
  int spender() const;
  bool probeSurprised(std::span<const Verdict> verdicts) const;

  int32_t vocabulary;
  SpeculationOptions options;
  CostTable stepCost;
  std::vector<Source> sources;
  SpeculationStatistics counts;

  // The step that is planned.
  std::vector<DecodingState> states;
  StepLoad load;
  std::vector<PlannedDraft> planned;
  DraftChoice choice;
  int32_t verified = 0;         // drafts
  int32_t drafting = 0;         // sequences that the chosen drafter drafts for
  int64_t backlog = 0;          // theirs
  int32_t budget = 0;           // of StaleBudget
  std::vector<double> forecast; // of EarlyStop
  bool isPlainTurn = false;
  int probedState = -1, probedSource = -1; // -1: none

  int64_t busySteps = 0; // that drafted, since the last plain turn
  int64_t probeTurn = 0; // of which sequence
};

} // namespace dspark::llm
