// Drafts by DSpark (arXiv 2607.05147) and DFlash (2602.06036): one pass of a small network over the target's
// hidden states guesses a whole block; a sequential head, if there is one, then lets each token depend on
// those before it and says how likely each will be accepted.
#pragma once
#include "runtime/llm/speculation/DraftGrowth.h"
#include "runtime/llm/speculation/DraftNetwork.h"
#include "runtime/llm/speculation/PagedDrafter.h"
#include <memory>

namespace dspark::llm {

struct BlockDrafterOptions {
  float leastSurvival = 0.05f; // no token is drafted whose estimates up to it multiply to less
};

/// Requests need the target's pages. Without confidences of the network's own the largest probability of each
/// row stands for them.
class BlockDrafter : public PagedDrafter {
public:
  /// Errors: another vocabulary than the target's; a block that does not fit a batch or the cache.
  static StatusOr<std::unique_ptr<BlockDrafter>> create(std::string name,
                                                        std::unique_ptr<BlockNetwork> network,
                                                        int32_t vocabulary, BlockDrafterOptions options = {});

  std::string_view name() const override { return ownName; }
  int32_t longestDraft() const override { return network->facts().longestDraft(); }
  Status propose(std::span<const DraftRequest> requests, std::span<Draft> drafts) override;

private:
  struct Job { // a request while it is drafted
    DraftGrowth growth;
    Memory *memory;
    std::vector<int32_t> slots; // of the hidden states that are new
    bool hasBlock = false;      // in the batch that runs
    std::vector<float> state;   // of the head
  };

  BlockDrafter(std::string name, std::unique_ptr<BlockNetwork> network, BlockDrafterOptions options);
  void prepare(Job &job);
  std::vector<Job *> nextBatch(std::vector<Job> &jobs, std::vector<BlockEntry> &entries) const;
  Status growBlocks(std::span<Job *const> jobs, const DraftRows &rows);
  Status growByHead(std::span<Job *const> jobs, const DraftRows &rows);

  std::string ownName;
  std::unique_ptr<BlockNetwork> network;
  BlockDrafterOptions options;
};

} // namespace dspark::llm
