// Drafts by EAGLE-3 (arXiv 2503.01840): one layer continues the target's hidden states, token after token.
#pragma once
#include "runtime/llm/speculation/DraftGrowth.h"
#include "runtime/llm/speculation/DraftNetwork.h"
#include "runtime/llm/speculation/PagedDrafter.h"
#include <memory>

namespace dspark::llm {

struct Eagle3DrafterOptions {
  int32_t longestDraft = 7;    // tokens; it was trained to continue itself so often
  float leastSurvival = 0.05f; // no token is drafted whose estimates up to it multiply to less
};

/// Requests need the target's pages. Rows of drafted tokens are never kept: the next call computes them again
/// from the target's hidden states.
class Eagle3Drafter : public PagedDrafter {
public:
  /// Errors: another vocabulary than the target's; no pages or rows.
  static StatusOr<std::unique_ptr<Eagle3Drafter>>
  create(std::unique_ptr<FeatureNetwork> network, int32_t vocabulary, Eagle3DrafterOptions options = {});

  std::string_view name() const override { return "eagle3"; }
  int32_t longestDraft() const override { return options.longestDraft; }
  Status propose(std::span<const DraftRequest> requests, std::span<Draft> drafts) override;

private:
  struct Job { // a request while it is drafted
    DraftGrowth growth;
    Memory *memory;
    std::vector<int32_t> slots; // of the hidden states that are new
    std::vector<float> feature; // of the row before the next, once that is the draft's own

    int64_t pending() const { return memory->length() - 1 - memory->written; }
  };

  Eagle3Drafter(std::unique_ptr<FeatureNetwork> network, Eagle3DrafterOptions options);
  void prepare(Job &job);
  std::vector<Job *> nextBatch(std::vector<Job> &jobs, std::vector<FeatureEntry> &entries) const;
  FeatureEntry entryOf(const Job &job, int64_t rows) const;

  std::unique_ptr<FeatureNetwork> network;
  Eagle3DrafterOptions options;
};

} // namespace dspark::llm
