// What drafters with a paged cache of their own have in common: the committed tokens of each sequence, and
// the pages that hold what was computed of them.
#pragma once
#include "runtime/llm/speculation/DraftGrowth.h"
#include "runtime/llm/speculation/SequenceTable.h"
#include <algorithm>

namespace dspark::llm {

/// Committed tokens are computed when the sequence is drafted for; so a sequence that is never drafted for
/// costs nothing. A sequence that finds no free pages takes those of the one that was drafted for longest
/// ago, which will have to be computed again; if there is none, it gets no drafts.
class PagedDrafter : public Drafter {
public:
  bool isFree() const override { return false; }
  Status begin(SequenceId sequence) override { return memories.begin(sequence); }
  Status append(SequenceId sequence, std::span<const int32_t> tokens) override;
  Status truncate(SequenceId sequence, int64_t length) override;
  void forget(SequenceId sequence) override;
  int64_t backlog(SequenceId sequence) const override;

protected:
  struct Memory {
    std::vector<int32_t> tokens;     // committed
    std::vector<int32_t> speculated; // drafted after them, as far as they are computed in the pages
    int64_t written = 0;             // tokens that are computed in the pages, the speculated included
    std::vector<int32_t> pages;
    uint64_t lastUse = 0;

    int64_t length() const { return int64_t(tokens.size()); }
  };
  struct CacheFacts {
    int64_t pages = 0, pageSize = 0, contextLength = 0;
  };
  struct Job { // a request while it is drafted
    DraftGrowth growth;
    Memory *memory = nullptr;
  };

  /// `usualPending`: tokens that a step leaves to compute, at most.
  PagedDrafter(const CacheFacts &cache, int64_t usualPending);

  /// The jobs (Job or what adds to it) of a new call of propose, whose sequences lose no pages to each other.
  template <typename Jobs>
  Status open(std::span<const DraftRequest> requests, std::span<Draft> drafts, const DraftLimits &limits,
              Jobs &jobs) {
    ++uses;
    jobs.resize(requests.size());
    for (size_t i = 0; i < requests.size(); ++i) {
      DSPARK_ASSIGN_OR_RETURN(jobs[i].memory, memories.find(requests[i].sequence));
      jobs[i].memory->lastUse = uses;
      jobs[i].growth.request = &requests[i];
      jobs[i].growth.draft = &drafts[i];
      jobs[i].growth.limit = std::min(requests[i].limit, limits.longestDraft);
      jobs[i].growth.leastSurvival = limits.leastSurvival;
    }
    return Status::ok();
  }
  bool reserve(Memory &memory, int64_t tokens);

private:
  bool takePagesOfOldest();
  void release(Memory &memory);

  CacheFacts cache;
  int64_t usualPending;
  std::vector<int32_t> freePages;
  SequenceTable<Memory> memories{*this};
  uint64_t uses = 0; // calls of propose
};

} // namespace dspark::llm
