// The drafts that a plan holds (DrafterRecord.h), run beside its model: networks that read the model's hidden
// states, and the model's own layers.
#pragma once
#include "runtime/llm/model/PlanFunction.h"
#include "runtime/llm/model/PlanModel.h"
#include "runtime/llm/speculation/BlockDrafter.h"
#include "runtime/llm/speculation/DrafterRecord.h"
#include "runtime/llm/speculation/Eagle3Drafter.h"

namespace dspark::llm {

/// Product of estimates below which no drafter of a plan goes on.
inline constexpr float kLeastSurvival = 0.05f;

/// The drafter, with the model's cache as its own one's size. `model` must outlive it. Errors: CorruptFile if
/// record, functions and model do not belong together; those of Session.
StatusOr<std::unique_ptr<Drafter>> openDrafter(const DrafterRecord &record, const PlanModel &model,
                                               const SessionOptions &session,
                                               float leastSurvival = kLeastSurvival);

class PlanBlockNetwork : public BlockNetwork {
public:
  static StatusOr<std::unique_ptr<PlanBlockNetwork>> open(const DrafterRecord &record, const PlanModel &model,
                                                          const SessionOptions &session);
  const Facts &facts() const override { return networkFacts; }
  StatusOr<DraftRows> draft(std::span<const BlockEntry> entries) override;
  StatusOr<HeadResult> head(const HeadRows &rows) override;

private:
  PlanBlockNetwork() = default;
  void layOut(std::span<const BlockEntry> entries);

  Facts networkFacts;
  int32_t maskToken = 0;
  std::unique_ptr<PlanFunction> block, sequential; // sequential: the head; null without one
  // Of the current step:
  struct Pieces { // of rows: offsets, lengths, page table
    std::vector<int32_t> offsets, lengths, table;
    void clear();
    void add(int64_t rows, int64_t length, std::span<const int32_t> pages, int64_t tablePages);
  } writes, blocks;
  std::vector<int32_t> slots, contextPositions, tokens, positions, wanted;
};

class PlanFeatureNetwork : public FeatureNetwork {
public:
  static StatusOr<std::unique_ptr<PlanFeatureNetwork>>
  open(const DrafterRecord &record, const PlanModel &model, const SessionOptions &session);
  const DraftFacts &facts() const override { return networkFacts; }
  StatusOr<DraftRows> draft(std::span<const FeatureEntry> entries) override;

private:
  PlanFeatureNetwork() = default;

  DraftFacts networkFacts;
  std::unique_ptr<PlanFunction> function;
  std::vector<int32_t> slots, tokens, positions, offsets, lengths, table, wanted;
  std::vector<float> features;
};

} // namespace dspark::llm
