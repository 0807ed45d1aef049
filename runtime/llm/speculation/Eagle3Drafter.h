// Drafts by EAGLE-3 (arXiv 2503.01840): one layer continues the target's hidden states, token after token.
#pragma once
#include "runtime/llm/speculation/HiddenStateDrafter.h"
#include <memory>

namespace dspark::llm {

/// Rows of drafted tokens are never kept: the next call computes them again
/// from the target's hidden states.
class Eagle3Drafter : public HiddenStateDrafter {
public:
  /// `limits`: networks are trained to continue themselves for about 7 tokens. Errors: another vocabulary
  /// than the target's; no pages or rows.
  static StatusOr<std::unique_ptr<Eagle3Drafter>> create(std::unique_ptr<FeatureNetwork> network,
                                                         int32_t vocabulary, DraftLimits limits);

  std::string_view name() const override { return "eagle3"; }
  int32_t longestDraft() const override { return limits.longestDraft; }
  Status propose(std::span<const DraftRequest> requests, std::span<Draft> drafts) override;

private:
  struct Job : HiddenStateDrafter::Job {
    std::vector<float> feature; // of the row before the next, once that is the draft's own
  };

  Eagle3Drafter(std::unique_ptr<FeatureNetwork> network, DraftLimits limits);
  std::vector<Job *> nextBatch(std::vector<Job> &jobs, std::vector<FeatureEntry> &entries) const;
  FeatureEntry entryOf(const Job &job, int64_t rows) const;

  std::unique_ptr<FeatureNetwork> network;
  DraftLimits limits;
};

} // namespace dspark::llm
