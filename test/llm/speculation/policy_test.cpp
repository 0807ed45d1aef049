// The policy in a simulated world, against the best fixed length chosen afterwards and against plain
// decoding.
//
// The world: R sequences decode side by side. A step of the model that verifies n drafts takes T(R, n),
// drafting l tokens for each takes D(R, l), and what is measured of both is off by up to 10 %. In each round
// a sequence has a difficulty; draft j is accepted with probability c_j, a logit of the sequence's kind of
// text plus the difficulty, falling with j. The drafter's confidence knows half of the difficulty and is too
// sure of itself by a temperature of 1.5. A fixed length drafts and verifies the same number of tokens for
// every sequence.
#include "ToyDecoding.h"
#include "runtime/llm/speculation/Speculation.h"

namespace dspark::llm {
namespace {
using toy::keyed;

constexpr int32_t kLongest = 8;
constexpr int kSteps = 1500;

struct Text { // what a sequence is like at a step
  const char *name;
  std::function<double(size_t sequence, int step)> logitAt;
  double fall; // of the logit by position
};

const Text kTexts[] = {
    {"code", [](size_t, int) { return 2.2; }, 0.05},
    {"chat", [](size_t, int) { return 0.6; }, 0.15},
    {"hopeless", [](size_t, int) { return -2.0; }, 0.2},
    {"mixed", [](size_t s, int) { return s % 2 ? 2.5 : -1.5; }, 0.05},
    {"drifting", [](size_t, int step) { return (step / 500) % 2 ? -1.5 : 2.0; }, 0.1},
};

struct Machine {
  const char *name;
  std::function<double(int32_t sequences, int32_t drafts)> step, draft;
};

const Machine kMachines[] = {
    // Weights are read once for all rows: a step of 8 rows takes 1.15 of one, its drafter 1/20 of a step.
    {"bandwidth", [](int32_t s, int32_t n) { return 1 + 0.02 * (s + n); },
     [](int32_t s, int32_t l) { return 0.05 * l + 0.002 * s * l; }},
    // Two cores without matrix units: 8 rows take 3.2 steps of one row.
    {"compute", [](int32_t s, int32_t n) { return 0.69 + 0.31 * (s + n); },
     [](int32_t s, int32_t l) { return 0.03 * l + 0.012 * s * l; }},
    // Tiles of 4 rows.
    {"stairs", [](int32_t s, int32_t n) { return 0.8 + 0.3 * ((s + n + 3) / 4); },
     [](int32_t s, int32_t l) { return 0.05 * l + 0.002 * s * l; }},
};

double acceptanceOf(const Text &text, size_t sequence, int step, int32_t j, double *told) {
  const double difficulty = 2 * (keyed({sequence, uint64_t(step), 1}) - 0.5);
  const double unknown = 2 * (keyed({sequence, uint64_t(step), 2}) - 0.5);
  const double logit = text.logitAt(sequence, step) + difficulty - text.fall * j;
  *told = std::clamp(1 / (1 + std::exp(-1.5 * logit)), 0.001, 0.999);
  return 1 / (1 + std::exp(-(logit + unknown)));
}

/// Accepted drafts of a sequence's round, of `length` offered.
int32_t outcome(const Text &text, size_t sequence, int step, int32_t length) {
  double told;
  for (int32_t j = 0; j < length; ++j)
    if (keyed({sequence, uint64_t(step), 3, uint64_t(j)}) >= acceptanceOf(text, sequence, step, j, &told))
      return j;
  return length;
}

/// Tokens per second of `length` drafts for everyone, always.
double fixedRate(const Text &text, const Machine &machine, int32_t sequences, int32_t length) {
  double tokens = 0, seconds = 0;
  for (int step = 0; step < kSteps; ++step) {
    for (int32_t s = 0; s < sequences; ++s)
      tokens += 1 + outcome(text, size_t(s), step, length);
    seconds += machine.step(sequences, sequences * length) + (length ? machine.draft(sequences, length) : 0);
  }
  return tokens / seconds;
}

class SimulatedDrafter : public Drafter {
public:
  explicit SimulatedDrafter(const Text &text) : text(text) {}
  std::string_view name() const override { return "simulated"; }
  int32_t longestDraft() const override { return kLongest; }
  bool isFree() const override { return false; }
  Status begin(SequenceId) override { return Status::ok(); }
  Status append(SequenceId, std::span<const int32_t>) override { return Status::ok(); }
  Status truncate(SequenceId, int64_t) override { return Status::ok(); }
  void forget(SequenceId) override {}
  Status propose(std::span<const DraftRequest> requests, std::span<Draft> drafts) override {
    asked = int32_t(requests.size());
    if (failsEvery > 0 && ++calls % failsEvery == 0)
      return {Code::Internal, "told to fail"};
    for (size_t i = 0; i < requests.size(); ++i)
      for (int32_t j = 0; j < requests[i].limit; ++j) {
        double told;
        acceptanceOf(text, requests[i].sequence, step, j, &told);
        drafts[i].tokens.push_back(0);
        drafts[i].drawnFrom.push_back({{0}, {1.0f}}); // drawn: only policies that do not look ahead
        drafts[i].confidence.push_back(claim > 0 ? claim : float(told));
        longest = std::max(longest, j + 1);
      }
    return Status::ok();
  }

  const Text &text;
  float claim = 0;    // of all drafts instead of what is known; 0: none
  int failsEvery = 0; // calls; 0: never
  int calls = 0, step = 0;
  int32_t asked = 0, longest = 0; // of the last call
};

/// The same, borrowed.
class Borrowed : public Drafter {
public:
  explicit Borrowed(Drafter &drafter) : drafter(drafter) {}
  std::string_view name() const override { return drafter.name(); }
  int32_t longestDraft() const override { return drafter.longestDraft(); }
  bool isFree() const override { return drafter.isFree(); }
  Status begin(SequenceId id) override { return drafter.begin(id); }
  Status append(SequenceId id, std::span<const int32_t> tokens) override {
    return drafter.append(id, tokens);
  }
  Status truncate(SequenceId id, int64_t length) override { return drafter.truncate(id, length); }
  void forget(SequenceId id) override { drafter.forget(id); }
  Status propose(std::span<const DraftRequest> requests, std::span<Draft> drafts) override {
    return drafter.propose(requests, drafts);
  }

private:
  Drafter &drafter;
};

CostTable measured(const std::function<double(int32_t, int32_t)> &cost, int32_t sequences, int32_t drafts,
                   bool isDrafter) {
  std::vector<CostPoint> points;
  for (CostPoint point : CostTable::pointsToMeasure(sequences, drafts)) {
    if (isDrafter && (point.drafts == 0 || point.drafts > drafts))
      continue;
    point.seconds = cost(point.sequences, point.drafts);
    points.push_back(point);
  }
  return *CostTable::create(points, isDrafter ? CostTable::Kind::Drafter : CostTable::Kind::Model);
}

/// Tokens per second of the policy.
double policyRate(SimulatedDrafter &drafter, const Machine &machine, int32_t sequences,
                  SpeculationOptions options) {
  std::vector<SpeculationSource> sources;
  sources.push_back(
      {std::make_unique<Borrowed>(drafter), measured(machine.draft, sequences, kLongest, true), 0, {}});
  auto speculation = std::move(*Speculation::create(2, measured(machine.step, sequences, kLongest, false),
                                                    std::move(sources), options));
  std::vector<DecodingState> states;
  for (int32_t s = 0; s < sequences; ++s) {
    speculation->begin(uint64_t(s));
    states.push_back({uint64_t(s), 100, 1000, nullptr});
  }
  double tokens = 0, seconds = 0;
  for (drafter.step = 0; drafter.step < kSteps; ++drafter.step) {
    drafter.asked = drafter.longest = 0;
    const auto plan = speculation->plan(states, {.room = sequences * kLongest});
    int32_t verified = 0;
    std::vector<Verdict> verdicts;
    for (int32_t s = 0; s < sequences; ++s) {
      const int32_t length = plan[size_t(s)].length;
      const int32_t accepted = outcome(drafter.text, size_t(s), drafter.step, length);
      verified += length;
      verdicts.push_back({std::min(accepted + 1, length), accepted, accepted + 1, false});
      tokens += accepted + 1;
    }
    const double draftSeconds =
        drafter.asked ? machine.draft(drafter.asked, std::max(drafter.longest, 1)) : 0;
    const double verifySeconds = machine.step(sequences, verified);
    seconds += draftSeconds + verifySeconds;
    const double noise = 0.9 + 0.2 * keyed({uint64_t(drafter.step), 9});
    speculation->learn(verdicts, {draftSeconds * noise, verifySeconds * noise});
  }
  return tokens / seconds;
}

using Admission = SpeculationOptions::Admission;

TEST(Policy, comesNearTheBestFixedLengthAndNeverFallsBehindPlainDecoding) {
  for (const Machine &machine : kMachines)
    for (const Text &text : kTexts)
      for (int32_t sequences : {1, 2, 4, 8, 16}) {
        const double plain = fixedRate(text, machine, sequences, 0);
        double best = plain;
        for (int32_t length = 1; length <= kLongest; ++length)
          best = std::max(best, fixedRate(text, machine, sequences, length));
        for (Admission admission : {Admission::EarlyStop, Admission::StaleBudget}) {
          SimulatedDrafter drafter(text);
          const double ours = policyRate(drafter, machine, sequences, {.admission = admission});
          SCOPED_TRACE(std::string(machine.name) + " " + text.name + " " + std::to_string(sequences));
          EXPECT_GT(ours / best, 0.95);
          EXPECT_GT(ours / plain, 0.97);
        }
      }
}

TEST(Policy, aDrafterThatLiesOrGivesUpCostsNoMoreThanTheLedgerAllows) {
  for (const Machine &machine : kMachines)
    for (int32_t sequences : {1, 4, 16}) {
      SimulatedDrafter liar(kTexts[2]); // hopeless text
      liar.claim = 0.95f;
      SimulatedDrafter moody(kTexts[2]);
      moody.claim = 0.95f;
      moody.failsEvery = 3;
      for (SimulatedDrafter *drafter : {&liar, &moody}) {
        const double ours = policyRate(*drafter, machine, sequences, {});
        EXPECT_GT(ours / fixedRate(kTexts[2], machine, sequences, 0), 0.97) << machine.name << sequences;
      }
    }
}

TEST(Policy, aBrokenDrafterIsNotAskedForEver) {
  SimulatedDrafter broken(kTexts[0]);
  broken.failsEvery = 1;
  policyRate(broken, kMachines[0], 2, {});
  EXPECT_LE(broken.calls, 8);
}

} // namespace
} // namespace dspark::llm
