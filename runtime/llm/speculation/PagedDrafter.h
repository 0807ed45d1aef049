// What drafters with a paged cache of their own have in common: the committed tokens of each sequence, and
// the pages that hold what was computed of them.
#pragma once
#include "runtime/llm/speculation/Drafter.h"
#include <unordered_map>

namespace dspark::llm {

/// Committed tokens are computed when the sequence is drafted for; so a sequence that is never drafted for
/// costs nothing. A sequence that finds no free pages takes those of the one that was drafted for longest
/// ago, which will have to be computed again; if there is none, it gets no drafts.
class PagedDrafter : public Drafter {
public:
  bool isFree() const override { return false; }
  Status begin(SequenceId sequence) override;
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

  /// `usualPending`: tokens that a step leaves to compute, at most.
  PagedDrafter(const CacheFacts &cache, int64_t usualPending);

  /// A new call of propose; sequences that are used in it lose no pages to each other.
  void beginCall() { ++uses; }
  StatusOr<Memory *> use(SequenceId sequence);
  bool reserve(Memory &memory, int64_t tokens);

private:
  StatusOr<Memory *> find(SequenceId sequence);
  bool takePagesOfOldest();
  void release(Memory &memory);

  CacheFacts cache;
  int64_t usualPending;
  std::vector<int32_t> freePages;
  std::unordered_map<SequenceId, Memory> memories;
  uint64_t uses = 0; // calls of propose
};

} // namespace dspark::llm
