// Drafts by some layers of the target itself (Zhang et al. 2309.08168, Draft & Verify). They read the
// target's own keys and values of committed tokens and write those of drafts behind them, where the target's
// next step overwrites them: nothing is computed twice, and there is nothing to catch up with.
#pragma once
#include "runtime/llm/model/ForwardModel.h"
#include "runtime/llm/speculation/DraftGrowth.h"
#include "runtime/llm/speculation/SequenceTable.h"
#include <memory>

namespace dspark::llm {

class SelfDrafter : public Drafter {
public:
  /// `layers` computes in the pages of the target. Errors: another vocabulary than the target's.
  static StatusOr<std::unique_ptr<SelfDrafter>> create(std::unique_ptr<ForwardModel> layers,
                                                       int32_t vocabulary, DraftLimits limits = {});

  std::string_view name() const override { return "self"; }
  int32_t longestDraft() const override { return limits.longestDraft; }
  bool isFree() const override { return false; }
  bool writesTargetPages() const override { return true; }

  Status begin(SequenceId sequence) override { return texts.begin(sequence); }
  Status append(SequenceId sequence, std::span<const int32_t> tokens) override;
  Status truncate(SequenceId sequence, int64_t length) override;
  void forget(SequenceId sequence) override { texts.forget(sequence); }
  Status propose(std::span<const DraftRequest> requests, std::span<Draft> drafts) override;

private:
  struct Job { // a request while it is drafted
    DraftGrowth growth;
    const std::vector<int32_t> *tokens;
  };

  SelfDrafter(std::unique_ptr<ForwardModel> layers, DraftLimits limits)
      : layers(std::move(layers)), limits(limits) {}
  Status growAll(std::span<Job> jobs);

  std::unique_ptr<ForwardModel> layers;
  DraftLimits limits;
  SequenceTable<std::vector<int32_t>> texts{*this}; // committed tokens
};

} // namespace dspark::llm
