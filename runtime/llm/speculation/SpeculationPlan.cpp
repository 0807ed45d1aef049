// The decision of a step: free drafts first, then whether a drafter that costs time promises more, then how
// many drafts of each sequence are verified. Up to the drafting nothing is known of what will be drawn; after
// it, drawn drafts are let in only as PrefixScheduler.h allows.
#include "runtime/llm/speculation/Speculation.h"
#include <limits>
#include <numeric>

namespace dspark::llm {
namespace {

constexpr int64_t kPlainEvery = 128;  // drafting steps: one without drafts keeps the comparison honest
constexpr int32_t kProbeDrafts = 2;   // of one sequence
constexpr int32_t kHorizonSteps = 64; // at most, over which a drafter's catching up is spread

} // namespace

/// Most tokens that a source may draft for a state.
int32_t Speculation::limitOf(const Source &source, size_t state) const {
  if (source.isBroken() || source.ledger.parked(states.size()) ||
      source.refused.contains(states[state].sequence) || int(state) == probedState)
    return 0;
  return int32_t(std::clamp<int64_t>(std::min<int64_t>(states[state].limit, load.room - verified), 0,
                                     source.given.drafter->longestDraft()));
}

DraftRequest Speculation::request(size_t state, int32_t limit) const {
  return {states[state].sequence, limit, states[state].pipeline, states[state].pages};
}

/// Seconds of the step with that many drafts. With other rows in it a draft costs what it costs beside them,
/// but is measured against a step of decoding alone: their time is not to be made up for by drafts.
double Speculation::stepSeconds(int32_t drafts) const {
  const int32_t sequences = int32_t(states.size()), others = int32_t(load.otherRows);
  const double alone = stepCost.seconds(sequences, others == 0 ? drafts : 0);
  return others == 0
             ? alone
             : alone + stepCost.seconds(sequences, others + drafts) - stepCost.seconds(sequences, others);
}

/// Of the step by drafts verified besides those that are settled.
StepSeconds Speculation::verifySeconds() const {
  const int32_t longest = longestDraft();
  int64_t most = 0;
  for (const DecodingState &state : states)
    most += std::clamp(state.limit, 0, longest);
  StepSeconds seconds;
  for (int32_t n = verified; n <= std::max<int64_t>(std::min(most, load.room), verified); ++n)
    seconds.push_back(stepSeconds(n));
  return seconds;
}

Estimates Speculation::estimate(size_t state) const {
  return sources[size_t(planned[state].source)].estimator.estimate(
      states[state].sequence, planned[state].draft, isLong(states[state]));
}

/// Asks one drafter for drafts of some of the states and puts those that hold tokens and keep the rules in
/// place. False: it had an error.
bool Speculation::propose(size_t index, std::span<const DraftRequest> requests, std::span<const size_t> of) {
  Source &source = sources[index];
  DrafterStatistics &statistics = counts.drafters[index];
  std::vector<Draft> drafts(requests.size());
  if (Status status = source.given.drafter->propose(requests, drafts); !status.isOk()) {
    ++source.failures;
    ++statistics.failures;
    statistics.lastFailure = status.message();
    return false;
  }
  source.failures = 0;
  for (size_t i = 0; i < drafts.size(); ++i) {
    if (Status status = checkDraft(drafts[i], requests[i].limit, vocabulary); !status.isOk()) {
      refuse(source, requests[i].sequence, status);
    } else if (!drafts[i].tokens.empty()) {
      ++statistics.drafts;
      statistics.draftedTokens += int64_t(drafts[i].tokens.size());
      planned[of[i]] = {std::move(drafts[i]), 0, int(index)};
    }
  }
  return true;
}

/// Puts the most promising free draft of each state in place; returns their estimates.
std::vector<Estimates> Speculation::draftFree() {
  std::vector<Estimates> best(states.size());
  std::vector<PlannedDraft> bestDrafts = planned;
  for (size_t s = 0; s < sources.size(); ++s) {
    if (!sources[s].given.drafter->isFree())
      continue;
    std::vector<DraftRequest> requests;
    std::vector<size_t> of;
    for (size_t i = 0; i < states.size(); ++i)
      if (const int32_t limit = limitOf(sources[s], i); limit > 0) {
        requests.push_back(request(i, limit));
        of.push_back(i);
      }
    if (requests.empty() || !propose(s, requests, of))
      continue;
    for (size_t i : of) {
      Estimates estimates = planned[i].source < 0 ? Estimates() : estimate(i);
      if (expectedAccepted(estimates) > expectedAccepted(best[i])) {
        best[i] = std::move(estimates);
        bestDrafts[i] = std::move(planned[i]);
      }
      planned[i] = {};
    }
  }
  planned = std::move(bestDrafts);
  return best;
}

/// What the drafters that cost time can be expected to give, by source; the free ones give nothing here.
std::vector<DraftOption> Speculation::draftOptions() const {
  std::vector<DraftOption> draftOptions(sources.size());
  for (size_t s = 0; s < sources.size(); ++s) {
    const SpeculationSource &source = sources[s].given;
    DraftOption &option = draftOptions[s];
    option.expected.resize(states.size());
    option.backlogSeconds.resize(states.size());
    if (source.drafter->isFree())
      continue;
    option.cost = &*source.cost;
    for (size_t i = 0; i < states.size(); ++i) {
      const int32_t limit = limitOf(sources[s], i);
      if (limit == 0)
        continue;
      option.expected[i] = sources[s].estimator.expected(states[i].sequence, limit, isLong(states[i]));
      option.backlogSeconds[i] = double(source.drafter->backlog(states[i].sequence)) * source.backlogSeconds /
                                 std::clamp(states[i].limit / 2, 1, kHorizonSteps);
    }
  }
  return draftOptions;
}

/// Lets the chosen drafter draft; its drafts and their estimates take the place of free ones.
void Speculation::draftByChoice(const std::vector<DraftOption> &given, std::vector<Estimates> &estimates,
                                const StepSeconds &verify) {
  const size_t index = size_t(choice.option);
  std::vector<DraftRequest> requests;
  std::vector<size_t> of;
  std::vector<Estimates> expected = estimates;
  for (size_t i = 0; i < states.size(); ++i)
    if (choice.drafts[i]) {
      expected[i] = given[index].expected[i];
      expected[i].resize(std::min(expected[i].size(), size_t(choice.length)));
      requests.push_back(request(i, int32_t(expected[i].size())));
      of.push_back(i);
      backlog += sources[index].given.drafter->backlog(states[i].sequence);
    }
  drafting = int32_t(requests.size());
  budget = scheduleBest(expected, later(verify, choice.draftSeconds)).drafts;
  forecast = inOrder(expected);
  if (!propose(index, requests, of))
    return;
  for (size_t i : of) {
    if (planned[i].source != choice.option)
      continue;
    estimates[i] = estimate(i);
    sources[index].estimator.drafted(states[i].sequence, planned[i].draft);
  }
}

Schedule Speculation::schedule(std::span<const Estimates> estimates, const StepSeconds &verify) const {
  if (options.admission == SpeculationOptions::Admission::Everything)
    return scheduleBudget(estimates, std::numeric_limits<int32_t>::max(), verify);
  const StepSeconds step = later(verify, choice.draftSeconds);
  const auto isDeterministic = [](const PlannedDraft &plan) { return plan.draft.isDeterministic(); };
  if (std::all_of(planned.begin(), planned.end(), isDeterministic)) {
    Schedule best = scheduleBest(estimates, step);
    if (drafting == 0 && best.tokensPerSecond * verify[0] < (1 + options.leastGain) * double(states.size()))
      return {.lengths = std::vector<int32_t>(states.size(), 0)};
    return best;
  }
  if (options.admission == SpeculationOptions::Admission::StaleBudget)
    return scheduleBudget(estimates, budget, step);
  return scheduleEarlyStop(estimates, step, forecast);
}

/// Drafts for one sequence by a source that was not used for long, and verifies that whatever it promises:
/// acceptance changes, and nothing else would tell. The source's ledger must afford it. Sequences take turns.
void Speculation::probe() {
  const size_t state = size_t(probeTurn++) % states.size();
  for (size_t s = 0; s < sources.size(); ++s) {
    Source &source = sources[s];
    const int32_t length = std::min(limitOf(source, state), kProbeDrafts);
    if (source.unusedSteps < source.probeAfter || length == 0)
      continue;
    const Drafter &drafter = *source.given.drafter;
    const int64_t owed = drafter.backlog(states[state].sequence);
    const double draftSeconds =
        drafter.isFree() ? 0
                         : source.given.cost->seconds(1, length) + double(owed) * source.given.backlogSeconds;
    if (!source.ledger.affords(states.size(), (draftSeconds + stepSeconds(length)) / stepSeconds(0) - 1))
      continue;
    const DraftRequest asked = request(state, length);
    if (!drafter.isFree()) {
      choice = {.option = int(s), .length = length, .drafts = {}, .draftSeconds = draftSeconds};
      drafting = 1;
      backlog = owed;
    }
    if (propose(s, {&asked, 1}, {&state, 1}) && planned[state].source >= 0) {
      const Estimates estimates = estimate(state);
      source.estimator.drafted(states[state].sequence, planned[state].draft);
      verifyFirst(state, int32_t(estimates.size()), estimates);
    }
    if (drafting > 0 || verified > 0) {
      probedState = int(state);
      probedSource = int(s);
      return;
    }
  }
}

void Speculation::verifyFirst(size_t state, int32_t length, const Estimates &estimates) {
  planned[state].length = length;
  planned[state].expected = expectedAccepted({estimates.begin(), estimates.begin() + length});
  verified += length;
}

std::span<const PlannedDraft> Speculation::plan(std::span<const DecodingState> given, const StepLoad &step) {
  states.assign(given.begin(), given.end());
  load = step;
  planned.assign(states.size(), {});
  choice = {};
  verified = drafting = budget = 0;
  backlog = 0;
  forecast.clear();
  probedState = probedSource = -1;
  const bool weighs = options.admission != SpeculationOptions::Admission::Everything;
  isPlainTurn = weighs && busySteps >= kPlainEvery;
  for (Source &source : sources)
    source.estimator.nextStep();
  if (states.empty() || sources.empty() || isPlainTurn)
    return planned;
  const auto isParked = [&](const Source &source) { return source.ledger.parked(states.size()); };
  counts.parkedSteps += std::any_of(sources.begin(), sources.end(), isParked);

  if (weighs)
    probe();
  const StepSeconds verify = verifySeconds();
  std::vector<Estimates> estimates = draftFree();
  if (drafting == 0) { // one drafter that costs time per step: its time is known then
    const std::vector<DraftOption> costly = draftOptions();
    choice = chooseDrafts(estimates, costly, verify);
    if (choice.option >= 0 &&
        choice.tokensPerSecond * verify[0] >= (1 + options.leastGain) * double(states.size()))
      draftByChoice(costly, estimates, verify);
    else
      choice = {};
  }
  const Schedule lengths = schedule(estimates, verify);
  for (size_t i = 0; i < states.size(); ++i)
    if (int(i) != probedState)
      verifyFirst(i, lengths.lengths[i], estimates[i]);
  return planned;
}

} // namespace dspark::llm
