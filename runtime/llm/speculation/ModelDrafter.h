// Drafts by a smaller model of the same vocabulary, token after token (Leviathan et al. 2211.17192). The
// model is any ForwardModel with a cache of its own.
#pragma once
#include "runtime/llm/model/ForwardModel.h"
#include "runtime/llm/speculation/Drafter.h"
#include <memory>
#include <unordered_map>

namespace dspark::llm {

struct ModelDrafterOptions {
  int32_t longestDraft = 8;    // tokens
  float leastSurvival = 0.05f; // no token is drafted whose estimates up to it multiply to less
};

/// Keeps the keys and values of committed tokens, and of drafts that turn out to be accepted. Committed
/// tokens are computed when the sequence is drafted for; so a sequence that is never drafted for costs
/// nothing. A sequence that finds no free pages takes those of the one that was drafted for longest ago,
/// which will have to be computed again; if there is none, it gets no drafts.
class ModelDrafter : public Drafter {
public:
  /// Errors: a model that drafts other tokens than those of `vocabulary`, or has no pages or rows.
  static StatusOr<std::unique_ptr<ModelDrafter>> create(std::unique_ptr<ForwardModel> model,
                                                        int32_t vocabulary, ModelDrafterOptions options = {});

  std::string_view name() const override { return "model"; }
  int32_t longestDraft() const override { return options.longestDraft; }
  bool isFree() const override { return false; }

  Status begin(SequenceId sequence) override;
  Status append(SequenceId sequence, std::span<const int32_t> tokens) override;
  Status truncate(SequenceId sequence, int64_t length) override;
  void forget(SequenceId sequence) override;
  int64_t backlog(SequenceId sequence) const override;

  /// A request with a pipeline gets drawn tokens and their distributions, or a deterministic draft if each of
  /// them leaves one token only (greedy); one without gets the likeliest tokens. Confidence is the largest
  /// probability of the model's own softmax.
  Status propose(std::span<const DraftRequest> requests, std::span<Draft> drafts) override;

private:
  struct Memory {
    std::vector<int32_t> tokens;     // committed
    std::vector<int32_t> speculated; // drafted after them, as far as keys and values are in the pages
    int64_t written = 0;             // tokens whose keys and values are in the pages, the speculated included
    std::vector<int32_t> pages;
    uint64_t lastUse = 0;
  };
  struct Job { // a request while it is drafted
    const DraftRequest *request;
    Draft *draft;
    Memory *memory;
    float survival = 1;
    bool isDone = false;
  };
  struct Run { // rows of a job in one batch
    Job *job;
    int64_t rows;
    bool givesLogits;
  };

  ModelDrafter(std::unique_ptr<ForwardModel> model, ModelDrafterOptions options);
  StatusOr<Memory *> find(SequenceId sequence);
  bool reserve(Memory &memory, int64_t tokens);
  bool takePagesOfOldest();
  void release(Memory &memory);
  std::vector<Run> nextRuns(std::vector<Job> &jobs) const;
  Status forward(std::span<const Run> runs);
  Status extend(Job &job, std::span<const float> logits);

  std::unique_ptr<ForwardModel> model;
  ModelDrafterOptions options;
  std::vector<int32_t> freePages;
  std::unordered_map<SequenceId, Memory> memories;
  uint64_t uses = 0; // calls of propose
};

} // namespace dspark::llm
