// Drafts by a smaller model of the same vocabulary, token after token (Leviathan et al. 2211.17192). The
// model is any ForwardModel with a cache of its own.
#pragma once
#include "runtime/llm/model/ForwardModel.h"
#include "runtime/llm/speculation/PagedDrafter.h"
#include <memory>

namespace dspark::llm {

/// Keeps the keys and values of committed tokens, and of drafts that turn out to be accepted.
class ModelDrafter : public PagedDrafter {
public:
  /// Errors: a model that drafts other tokens than those of `vocabulary`, or has no pages or rows.
  static StatusOr<std::unique_ptr<ModelDrafter>> create(std::unique_ptr<ForwardModel> model,
                                                        int32_t vocabulary, DraftLimits limits = {});

  std::string_view name() const override { return "model"; }
  int32_t longestDraft() const override { return limits.longestDraft; }

  /// A request with a pipeline gets drawn tokens and their distributions, or a deterministic draft if each of
  /// them leaves one token only (greedy); one without gets the likeliest tokens. Confidence is the largest
  /// probability of the model's own softmax.
  Status propose(std::span<const DraftRequest> requests, std::span<Draft> drafts) override;

private:
  struct Run { // rows of a job in one batch
    Job *job;
    int64_t rows;
    bool givesLogits;
  };

  ModelDrafter(std::unique_ptr<ForwardModel> model, DraftLimits limits);
  std::vector<Run> nextRuns(std::vector<Job> &jobs) const;
  Status forward(std::span<const Run> runs);

  std::unique_ptr<ForwardModel> model;
  DraftLimits limits;
};

} // namespace dspark::llm
