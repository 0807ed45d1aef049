// Drafts by DSpark (arXiv 2607.05147) and DFlash (2602.06036): one pass of a small network over the target's
// hidden states guesses a whole block; a sequential head, if there is one, then lets each token depend on
// those before it and says how likely each will be accepted.
#pragma once
#include "runtime/llm/speculation/HiddenStateDrafter.h"
#include <memory>

namespace dspark::llm {

/// Without confidences of the network's own the largest probability of each
/// row stands for them.
class BlockDrafter : public HiddenStateDrafter {
public:
  /// Drafts end with the block, or where survival falls below `leastSurvival` (DraftLimits). Errors: another
  /// vocabulary than the target's; a block that does not fit a batch or the cache.
  static StatusOr<std::unique_ptr<BlockDrafter>> create(std::string name,
                                                        std::unique_ptr<BlockNetwork> network,
                                                        int32_t vocabulary,
                                                        float leastSurvival = DraftLimits().leastSurvival);

  std::string_view name() const override { return ownName; }
  int32_t longestDraft() const override { return network->facts().longestDraft(); }
  Status propose(std::span<const DraftRequest> requests, std::span<Draft> drafts) override;

private:
  struct Job : HiddenStateDrafter::Job {
    bool hasBlock = false;    // in the batch that runs
    std::vector<float> state; // of the head
  };

  BlockDrafter(std::string name, std::unique_ptr<BlockNetwork> network, float leastSurvival);
  std::vector<Job *> nextBatch(std::vector<Job> &jobs, std::vector<BlockEntry> &entries) const;
  Status growBlocks(std::span<Job *const> jobs, const DraftRows &rows);
  Status growByHead(std::span<Job *const> jobs, const DraftRows &rows);

  std::string ownName;
  std::unique_ptr<BlockNetwork> network;
  DraftLimits limits;
};

} // namespace dspark::llm
