// Speculation as a whole, with its learning policy and changing budgets, against plain decoding: equal token
// by token where drafts are deterministic, equal in joint distribution where they are drawn.
#include "ToyDrafts.h"
#include "runtime/llm/speculation/LookupDrafter.h"
#include "runtime/llm/speculation/ModelDrafter.h"
#include "runtime/llm/speculation/SelfDrafter.h"
#include "runtime/llm/speculation/Speculation.h"

namespace dspark::llm {
namespace {
using namespace toy;

constexpr size_t kLength = 4, kBatch = 3;
const Model kTarget{.vocabulary = 3};
const Tokens kPrompts[kBatch] = {{1, 0}, {2, 2, 1}, {0, 1, 0, 1}};

CostTable stepCost(double perDraft, double stair) {
  std::vector<CostPoint> points;
  for (int32_t s : {1, 3})
    for (int32_t d = 0; d <= 16; ++d)
      points.push_back({s, d, 1 + 0.1 * s + perDraft * d + stair * ((d + 3) / 4)});
  return *CostTable::create(points);
}

SpeculationSource lookup() {
  return {std::make_unique<LookupDrafter>(LookupOptions{.leastMatch = 1, .longestDraft = 4}), {}, 0, {}};
}

SpeculationSource model(uint64_t variant, double sharpness = 2) {
  auto forward = std::make_unique<ForwardToy>(Model{.variant = variant, .sharpness = sharpness}, 64);
  auto drafter = ModelDrafter::create(std::move(forward), 3, {.longestDraft = 4, .leastSurvival = 0.1f});
  return {
      std::move(*drafter),
      *CostTable::create({{1, 1, 0.02}, {1, 4, 0.08}, {3, 1, 0.03}, {3, 4, 0.12}}, CostTable::Kind::Drafter),
      0.001,
      {}};
}

// What the batch's sequences have in the target's cache.
TargetCache &targetCache() {
  static TargetCache cache(kBatch);
  return cache;
}

SpeculationSource overTargetPages(std::unique_ptr<Drafter> drafter) {
  return {
      std::move(drafter),
      *CostTable::create({{1, 1, 0.05}, {1, 4, 0.06}, {3, 1, 0.06}, {3, 4, 0.08}}, CostTable::Kind::Drafter),
      0.001,
      {}};
}

SpeculationSource block(uint64_t variant, bool hasHead = true) {
  auto network = std::make_unique<ToyBlock>(Model{.variant = variant}, targetCache().slots, hasHead);
  return overTargetPages(
      std::move(*BlockDrafter::create("block", std::move(network), 3, /*leastSurvival=*/0.1f)));
}

SpeculationSource eagle(uint64_t variant) {
  auto network = std::make_unique<ToyFeatures>(Model{.variant = variant}, targetCache().slots);
  return overTargetPages(std::move(*Eagle3Drafter::create(std::move(network), 3, {.longestDraft = 4})));
}

SpeculationSource self(uint64_t variant) {
  auto layers =
      std::make_unique<ForwardToy>(Model{.variant = variant}, targetCache().slots, TargetCache::kPageSize, 8);
  return overTargetPages(std::move(*SelfDrafter::create(std::move(layers), 3, {.longestDraft = 4})));
}

/// Decodes kBatch sequences side by side, in one Speculation that goes on learning from batch to batch.
class Decoder {
public:
  Decoder(CostTable steps, std::vector<SpeculationSource> sources, SpeculationOptions options, bool isDrawn)
      : isDrawn(isDrawn),
        speculation(std::move(*Speculation::create(3, std::move(steps), std::move(sources), options))) {}

  std::vector<Tokens> decode(uint64_t seed, size_t length) {
    std::vector<Sequence> sequences;
    for (size_t s = 0; s < kBatch; ++s) {
      sequences.emplace_back(kTarget, seed * kBatch + s, kPrompts[s]);
      speculation->begin(seed * kBatch + s);
      speculation->append(seed * kBatch + s, kPrompts[s]);
    }
    for (bool isDone = false; !isDone;) {
      step(sequences, seed, length);
      isDone = true;
      for (const Sequence &sequence : sequences)
        isDone &= sequence.output().size() >= length;
    }
    std::vector<Tokens> outputs;
    for (Sequence &sequence : sequences) {
      speculation->forget(sequence.seed);
      outputs.push_back(sequence.output());
      outputs.back().resize(length);
    }
    return outputs;
  }

  const SpeculationStatistics &statistics() const { return speculation->statistics(); }

private:
  void step(std::vector<Sequence> &sequences, uint64_t seed, size_t length) {
    std::vector<Pipeline> pipelines;
    for (const Sequence &sequence : sequences)
      pipelines.emplace_back(sequence.seed, sequence.tokens.size());
    std::vector<DecodingState> states;
    for (size_t s = 0; s < sequences.size(); ++s)
      targetCache().write(s, sequences[s].tokens);
    for (size_t s = 0; s < sequences.size(); ++s)
      states.push_back({sequences[s].seed, int64_t(sequences[s].tokens.size()), 4,
                        isDrawn ? &pipelines[s] : nullptr, targetCache().pages(s)});
    const auto plan = speculation->plan(states, {.otherRows = int64_t(seed % 3 == 0), .room = 9});
    std::vector<Verdict> verdicts;
    double verifySeconds = 1.3;
    for (size_t s = 0; s < sequences.size(); ++s) {
      const size_t before = sequences[s].tokens.size();
      const auto verdict = sequences[s].step(plan[s].draft, size_t(plan[s].length));
      ASSERT_TRUE(verdict.isOk());
      verdicts.push_back(*verdict);
      verifySeconds += 0.2 * plan[s].length;
      const std::span<const int32_t> tokens(sequences[s].tokens);
      speculation->append(sequences[s].seed, tokens.subspan(before));
    }
    // Times wander, and so do budgets.
    const double wander = 0.7 + 0.6 * keyed({seed, sequences[0].tokens.size(), 5});
    speculation->learn(verdicts, {.draftSeconds = 0.05, .verifySeconds = verifySeconds * wander});
  }

  bool isDrawn;
  std::unique_ptr<Speculation> speculation;
};

std::vector<Tokens> plain(uint64_t seed, size_t length) {
  std::vector<Tokens> outputs;
  for (size_t s = 0; s < kBatch; ++s) {
    Sequence sequence(kTarget, seed * kBatch + s, kPrompts[s]);
    while (sequence.output().size() < length)
      EXPECT_TRUE(sequence.step({}, 0).isOk());
    outputs.push_back(sequence.output());
  }
  return outputs;
}

template <typename... Sources> std::vector<SpeculationSource> all(Sources... sources) {
  std::vector<SpeculationSource> list;
  (list.push_back(std::move(sources)), ...);
  return list;
}

TEST(Exactness, deterministicDraftersGiveTheTokensOfPlainDecoding) {
  for (double perDraft : {0.01, 0.1}) {
    Decoder decoder(stepCost(perDraft, 0.05),
                    all(lookup(), model(0), block(1), eagle(2), block(0, false), self(0)), {}, false);
    for (uint64_t seed = 0; seed < 60; ++seed)
      EXPECT_EQ(decoder.decode(seed, 40), plain(seed, 40));
    EXPECT_GT(decoder.statistics().speculatedSteps, decoder.statistics().steps / 10);
  }
}

/// Largest deviation, in standard deviations, of the batch's sequences from the model.
double deviation(Decoder &decoder, uint64_t batches) {
  Histogram histograms[kBatch];
  for (uint64_t seed = 0; seed < batches; ++seed) {
    const auto outputs = decoder.decode(seed, kLength);
    for (size_t s = 0; s < kBatch; ++s)
      histograms[s].add(outputs[s]);
  }
  double largest = 0;
  for (size_t s = 0; s < kBatch; ++s)
    largest = std::max(largest, deviationFrom(kTarget, kPrompts[s], kLength, histograms[s]));
  return largest;
}

using Admission = SpeculationOptions::Admission;

TEST(Exactness, drawnDraftsKeepTheJointDistributionUnderEveryPolicy) {
  for (Admission admission : {Admission::EarlyStop, Admission::StaleBudget})
    for (double stair : {0.0, 0.3}) {
      Decoder decoder(stepCost(0.05, stair), all(model(1)), {.admission = admission, .leastGain = 0}, true);
      EXPECT_LT(deviation(decoder, 6000), 5);
      const DrafterStatistics &drafter = decoder.statistics().drafters[0];
      EXPECT_GT(drafter.verifiedTokens, 1500) << "or nothing was tested";
      EXPECT_LT(drafter.verifiedTokens, drafter.draftedTokens) << "or no budget was at work";
    }
}

TEST(Exactness, draftsOverTheTargetsPagesKeepTheJointDistributionUnderEveryPolicy) {
  for (Admission admission : {Admission::EarlyStop, Admission::StaleBudget})
    for (auto source : {+[] { return block(1); }, +[] { return eagle(1); }, +[] { return self(1); }}) {
      Decoder decoder(stepCost(0.05, 0.3), all(source()), {.admission = admission, .leastGain = 0}, true);
      EXPECT_LT(deviation(decoder, 6000), 5);
      EXPECT_GT(decoder.statistics().drafters[0].verifiedTokens, 1500) << "or nothing was tested";
    }
}

TEST(Exactness, mixedDraftersKeepTheJointDistribution) {
  Decoder decoder(stepCost(0.04, 0.1), all(lookup(), model(1), block(2), eagle(3), self(4)), {.leastGain = 0},
                  true);
  EXPECT_LT(deviation(decoder, 6000), 5);
  for (const DrafterStatistics &drafter : decoder.statistics().drafters)
    EXPECT_GT(drafter.verifiedTokens, 100) << drafter.name;
}

/// One sequence, drafts drawn by another model, true conditional acceptance as estimates, lengths by
/// `schedule`.
template <typename Scheduler> double deviationUnder(Scheduler schedule) {
  const Model drafter{.variant = 1, .sharpness = 3};
  Histogram histogram;
  for (uint64_t seed = 0; seed < 15000; ++seed) {
    Sequence sequence(kTarget, seed, kPrompts[0]);
    while (sequence.output().size() < kLength) {
      const Draft draft = draftBy(drafter, sequence.tokens, seed, 3, true);
      std::vector<Estimates> estimates(1);
      Tokens history = sequence.tokens;
      for (size_t j = 0; j < 3; ++j) {
        double overlap = 0;
        for (int32_t v = 0; v < 3; ++v)
          overlap += std::min(probabilityOf(kTarget.next(history), v), probabilityOf(draft.drawnFrom[j], v));
        estimates[0].push_back(float(overlap));
        history.push_back(draft.tokens[j]);
      }
      EXPECT_TRUE(sequence.step(draft, size_t(schedule(estimates).lengths[0])).isOk());
    }
    Tokens output = sequence.output();
    output.resize(kLength);
    histogram.add(output);
  }
  return deviationFrom(kTarget, kPrompts[0], kLength, histogram);
}

TEST(Exactness, aPolicyThatLooksAheadFailsWhereTheOthersPass) {
  // The second draft is what pays: whether it is let in decides about the first, and depends on it.
  const StepSeconds seconds = {1, 1.95, 2.3, 2.9};
  EXPECT_GT(deviationUnder([&](auto &e) { return scheduleBest(e, seconds); }), 20);
  EXPECT_LT(deviationUnder([&](auto &e) { return scheduleEarlyStop(e, seconds); }), 5);
  const std::vector<double> forecast = {0.8, 0.75, 0.7};
  EXPECT_LT(deviationUnder([&](auto &e) { return scheduleEarlyStop(e, seconds, forecast); }), 5);
  EXPECT_LT(deviationUnder([&](auto &e) { return scheduleBudget(e, 2, seconds); }), 5);
}

} // namespace
} // namespace dspark::llm
