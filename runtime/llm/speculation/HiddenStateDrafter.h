// What drafters over the target's hidden states have in common: which of these are new to them, and where
// they lie in the target's cache.
#pragma once
#include "runtime/llm/speculation/DraftNetwork.h"
#include "runtime/llm/speculation/PagedDrafter.h"

namespace dspark::llm {

/// Requests need the target's pages.
class HiddenStateDrafter : public PagedDrafter {
protected:
  struct Job : PagedDrafter::Job {
    std::vector<int32_t> slots; // of the hidden states that are new

    /// Those that were not taken in yet.
    int64_t pending() const { return contextOf(*memory) - memory->written; }
    std::span<const int32_t> nextSlots(int64_t rows) const {
      return std::span<const int32_t>(slots).last(size_t(pending())).first(size_t(rows));
    }
  };

  /// A step commits a whole draft of `longestDraft` and a token more, which has no hidden state yet.
  HiddenStateDrafter(const DraftFacts &facts, int32_t longestDraft)
      : PagedDrafter({facts.pages, facts.pageSize, facts.contextLength}, longestDraft + 2),
        targetPageSize(facts.targetPageSize) {}

  /// Tokens that have hidden states: all committed ones but the last, which the target has not computed yet.
  static int64_t contextOf(const Memory &memory) { return memory.length() - 1; }

  /// Reserves pages for the context and `room` rows more, and finds the new slots; the last `again` rows of
  /// the context, without which nothing is drafted, are computed once more. A job that cannot be is done.
  void prepare(Job &job, int64_t room, int64_t again);

private:
  int64_t targetPageSize;
};

} // namespace dspark::llm
