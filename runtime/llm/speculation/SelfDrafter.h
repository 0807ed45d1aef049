// Drafts by some layers of the target itself (Zhang et al. 2309.08168, Draft & Verify). They read the
// target's own keys and values of committed tokens and write those of drafts behind them, where the target's
// next step overwrites them: nothing is computed twice, and there is nothing to catch up with.
#pragma once
#include "runtime/llm/model/ForwardModel.h"
#include "runtime/llm/speculation/DraftGrowth.h"
#include <memory>
#include <unordered_map>

namespace dspark::llm {

struct SelfDrafterOptions {
  int32_t longestDraft = 8;    // tokens
  float leastSurvival = 0.05f; // no token is drafted whose estimates up to it multiply to less
};

class SelfDrafter : public Drafter {
public:
  /// `layers` computes in the pages of the target. Errors: another vocabulary than the target's.
  static StatusOr<std::unique_ptr<SelfDrafter>> create(std::unique_ptr<ForwardModel> layers,
                                                       int32_t vocabulary, SelfDrafterOptions options = {});

  std::string_view name() const override { return "self"; }
  int32_t longestDraft() const override { return options.longestDraft; }
  bool isFree() const override { return false; }
  bool writesTargetPages() const override { return true; }

  Status begin(SequenceId sequence) override;
  Status append(SequenceId sequence, std::span<const int32_t> tokens) override;
  Status truncate(SequenceId sequence, int64_t length) override;
  void forget(SequenceId sequence) override { sequences.erase(sequence); }
  Status propose(std::span<const DraftRequest> requests, std::span<Draft> drafts) override;

private:
  struct Job { // a request while it is drafted
    DraftGrowth growth;
    const std::vector<int32_t> *tokens;
  };

  SelfDrafter(std::unique_ptr<ForwardModel> layers, SelfDrafterOptions options)
      : layers(std::move(layers)), options(options) {}
  StatusOr<std::vector<int32_t> *> find(SequenceId sequence);
  Status growAll(std::span<Job> jobs);

  std::unique_ptr<ForwardModel> layers;
  SelfDrafterOptions options;
  std::unordered_map<SequenceId, std::vector<int32_t>> sequences; // their committed tokens
};

} // namespace dspark::llm
