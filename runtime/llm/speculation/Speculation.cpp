// The life of sequences, and what is learned from a step. SpeculationPlan.cpp decides.
#include "runtime/llm/speculation/Speculation.h"

namespace dspark::llm {
namespace {

constexpr int kMostFailures = 8;     // of propose in a row, after which a drafter is not asked again
constexpr int64_t kSmallBacklog = 4; // tokens per sequence: up to there draft times fit the table
constexpr double kBacklogRate = 0.2; // of seconds per token of backlog: few and large measurements
constexpr int64_t kFirstProbeAfter =
    1; // steps without use; half as many again after every probe without surprise
constexpr int64_t kLastProbeAfter = 64; // so probes take 1 step in 64 at most

} // namespace

bool Speculation::Source::isBroken() const { return failures >= kMostFailures; }

Speculation::Speculation(int32_t vocabulary, CostTable steps, std::vector<SpeculationSource> given,
                         SpeculationOptions options)
    : vocabulary(vocabulary), options(options), stepCost(std::move(steps)) {
  for (SpeculationSource &source : given) {
    counts.drafters.emplace_back().name = source.drafter->name();
    sources.emplace_back(std::move(source), options.lossShare).probeAfter = kFirstProbeAfter;
  }
}

StatusOr<std::unique_ptr<Speculation>> Speculation::create(int32_t vocabulary, CostTable steps,
                                                           std::vector<SpeculationSource> sources,
                                                           SpeculationOptions options) {
  for (const SpeculationSource &source : sources)
    if (!source.drafter->isFree() && !source.cost)
      return invalidArgument("drafter " + std::string(source.drafter->name()) +
                             " has no table of what its drafts cost");
  return std::unique_ptr<Speculation>(
      new Speculation(vocabulary, std::move(steps), std::move(sources), options));
}

int32_t Speculation::longestDraft() const {
  int32_t longest = 0;
  for (const Source &source : sources)
    longest = std::max(longest, source.given.drafter->longestDraft());
  return longest;
}

void Speculation::refuse(Source &source, SequenceId sequence, const Status &why) {
  DrafterStatistics &statistics = counts.drafters[size_t(&source - sources.data())];
  ++statistics.failures;
  statistics.lastFailure = why.message();
  source.refused.insert(sequence);
  source.given.drafter->forget(sequence);
}

int32_t Speculation::longestInTargetPages() const {
  int32_t longest = 0;
  for (const Source &source : sources)
    if (source.given.drafter->writesTargetPages() && !source.isBroken())
      longest = std::max(longest, source.given.drafter->longestDraft());
  return longest;
}

void Speculation::begin(SequenceId sequence) {
  for (Source &source : sources)
    if (Status status = source.given.drafter->begin(sequence); !status.isOk())
      refuse(source, sequence, status);
}

void Speculation::append(SequenceId sequence, std::span<const int32_t> tokens) {
  for (Source &source : sources)
    if (!source.refused.contains(sequence))
      if (Status status = source.given.drafter->append(sequence, tokens); !status.isOk())
        refuse(source, sequence, status);
}

void Speculation::truncate(SequenceId sequence, int64_t length) {
  for (Source &source : sources)
    if (!source.refused.contains(sequence))
      if (Status status = source.given.drafter->truncate(sequence, length); !status.isOk())
        refuse(source, sequence, status);
}

void Speculation::forget(SequenceId sequence) {
  for (Source &source : sources) {
    if (source.refused.erase(sequence) == 0)
      source.given.drafter->forget(sequence);
    source.estimator.forget(sequence);
  }
}

void Speculation::learn(std::span<const Verdict> verdicts, const StepTimes &times) {
  verified = times.drafts < 0 ? verified : times.drafts;
  const size_t count = std::min(verdicts.size(), planned.size());
  for (size_t i = 0; i < count; ++i) {
    const PlannedDraft &plan = planned[i];
    const Verdict &verdict = verdicts[i];
    counts.committedTokens += verdict.committed;
    if (plan.length == 0)
      continue;
    sources[size_t(plan.source)].estimator.learn(states[i].sequence, plan.draft, verdict);
    DrafterStatistics &statistics = counts.drafters[size_t(plan.source)];
    statistics.verifiedTokens += plan.length;
    statistics.acceptedTokens += verdict.accepted;
    statistics.expectedTokens += plan.expected;
    if (plan.draft.confidence.empty() && verdict.judged > 0) {
      MatchStatistics &match = statistics.byMatch[AcceptanceTable::leastOfClass(plan.draft.match)];
      ++match.judged;
      match.accepted += verdict.accepted > 0;
      match.learned = sources[size_t(plan.source)].estimator.ofMatch(plan.draft.match);
    }
    const size_t judged = size_t(verdict.judged);
    statistics.judgedAt.resize(std::max(statistics.judgedAt.size(), judged));
    statistics.acceptedAt.resize(statistics.judgedAt.size());
    for (size_t j = 0; j < judged; ++j) {
      ++statistics.judgedAt[j];
      statistics.acceptedAt[j] += int32_t(j) < verdict.accepted;
    }
  }
  learnCosts(times);
  settle(verdicts.first(count), times);
  planned.clear();
}

void Speculation::learnCosts(const StepTimes &times) {
  counts.draftSeconds += times.draftSeconds;
  counts.verifySeconds += times.verifySeconds;
  if (planned.empty())
    return;
  if (load.otherRows == 0) // rows of prompts want no logits: they are cheaper than drafts
    stepCost.observe(int32_t(states.size()), verified, times.verifySeconds);
  if (drafting == 0)
    return;
  SpeculationSource &source = sources[size_t(choice.option)].given;
  if (backlog <= kSmallBacklog * drafting)
    source.cost->observe(drafting, choice.length, times.draftSeconds);
  else
    source.backlogSeconds +=
        kBacklogRate *
        ((times.draftSeconds - source.cost->seconds(drafting, choice.length)) / double(backlog) -
         source.backlogSeconds);
}

/// The source whose ledger a step's time goes to; -1: it was plain.
int Speculation::spender() const {
  if (drafting > 0)
    return choice.option;
  const auto longest = std::max_element(planned.begin(), planned.end(),
                                        [](const auto &a, const auto &b) { return a.length < b.length; });
  return longest == planned.end() || longest->length == 0 ? -1 : longest->source;
}

/// A probe that gave twice what it promised is followed by another at once: something has changed.
bool Speculation::probeSurprised(std::span<const Verdict> verdicts) const {
  const size_t state = size_t(probedState);
  return state < verdicts.size() && verdicts[state].accepted > 2 * planned[state].expected;
}

/// Books the step's gain or loss against plain decoding, and counts towards the next probes and plain turn.
void Speculation::settle(std::span<const Verdict> verdicts, const StepTimes &times) {
  if (planned.empty())
    return;
  const double plain = stepCost.seconds(int32_t(states.size()), 0);
  // With other rows in the step their share of the measured time is unknown: the table's word stands for it.
  const double verify = load.otherRows == 0 ? times.verifySeconds : stepSeconds(verified);
  double committed = 0;
  for (const Verdict &verdict : verdicts)
    committed += verdict.committed;
  const int spending = spender();
  for (size_t s = 0; s < sources.size(); ++s) {
    Source &source = sources[s];
    if (int(s) == spending)
      source.ledger.record(states.size(), committed / double(states.size()),
                           (times.draftSeconds + verify) / plain);
    else
      source.ledger.record(states.size(), 1, 1);
    const auto isItsOwn = [&](const PlannedDraft &plan) { return plan.source == int(s) && plan.length > 0; };
    const bool isUsed = int(s) == spending || std::any_of(planned.begin(), planned.end(), isItsOwn);
    source.unusedSteps = isUsed ? 0 : source.unusedSteps + 1;
    if (int(s) == probedSource)
      source.probeAfter = probeSurprised(verdicts)
                              ? kFirstProbeAfter
                              : std::min(source.probeAfter + source.probeAfter / 2 + 1, kLastProbeAfter);
    else if (isUsed)
      source.probeAfter = kFirstProbeAfter;
  }
  ++counts.steps;
  counts.speculatedSteps += verified > 0;
  counts.probes += probedSource >= 0;
  busySteps = isPlainTurn ? 0 : busySteps + (spending >= 0);
}

} // namespace dspark::llm
