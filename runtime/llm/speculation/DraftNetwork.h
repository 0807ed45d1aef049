// Drafts that read the target's hidden states, as their drafters see them: DSpark and DFlash, which guess a
// whole block at once (BlockNetwork), and EAGLE-3 (FeatureNetwork). model/PlanDraft.h runs them from a plan.
//
// The target keeps the hidden states of every token in its paged cache. A draft names them by their slots,
// page * page size + place in the page, so that they are there for prefixes found in the cache and after
// preemption as well. Keys and values of the draft's own are in pages of its own.
#pragma once
#include "runtime/base/Status.h"
#include <cstdint>
#include <span>
#include <vector>

namespace dspark::llm {

struct DraftFacts {
  int32_t vocabulary = 0;     // the target's
  int64_t hidden = 0;         // numbers of a draft's row
  int64_t contextLength = 0;  // most tokens of one sequence
  int64_t pages = 0;          // of its cache, numbered from 0
  int64_t pageSize = 0;       // tokens of one
  int64_t targetPageSize = 0; // of the target's
  int64_t maxRows = 0;        // of one batch
};

/// Rows of logits and of what the draft made before its output [rows][hidden]. Valid until the next call.
struct DraftRows {
  std::span<const float> logits, hidden;
};

/// What a block draft does for one sequence.
struct BlockEntry {
  std::span<const int32_t> slots; // hidden states of its next tokens
  int64_t length = 0;             // tokens whose hidden states it has seen with these
  std::span<const int32_t> pages; // its own, with room for these tokens and the block
  int32_t anchor = -1; // the token at position `length`, from which a block is drafted; -1: none yet
  int32_t drafts = 0;  // that are wanted of the block
};

/// Rows for the sequential head: row i follows the token previous[i].
struct HeadRows {
  std::span<const int32_t> previous;     // [rows]
  std::span<const float> logits, hidden; // as draft() gave them
  std::span<const float> state;          // [rows][headState], zeros before the first of a block
};
struct HeadResult {
  std::span<const float> logits;     // [rows][vocabulary]
  std::span<const float> confidence; // [rows]: the logit of each being accepted; empty if the draft has none
  std::span<const float> state;      // [rows][headState]
};

/// One caller at a time.
class BlockNetwork {
public:
  struct Facts : DraftFacts {
    int32_t blockRows = 0;      // the anchor and masks
    bool anchorPredicts = true; // row k gives draft k + 1; else row k gives draft k and the anchor's nothing
    bool hasHead = false;       // logits and confidences come from head()
    int64_t draftLogits = 0;    // of a row of draft(): with a head the draft may have a vocabulary of its own
    int64_t headState = 0;      // numbers

    int32_t longestDraft() const { return blockRows - !anchorPredicts; }
  };
  virtual ~BlockNetwork() = default;
  virtual const Facts &facts() const = 0;

  /// Rows of the wanted drafts, sequence after sequence. Entries have at most maxRows rows, those of hidden
  /// states and blocks together.
  virtual StatusOr<DraftRows> draft(std::span<const BlockEntry> entries) = 0;
  virtual StatusOr<HeadResult> head(const HeadRows &rows) = 0;
};

/// What EAGLE-3 does for one sequence. Its row i pairs the hidden state of token i with token i + 1.
struct FeatureEntry {
  std::span<const int32_t> slots;  // hidden states of tokens whose rows are next; or, if empty:
  std::span<const float> feature;  // [hidden]: of the row before, in the place of the target's
  std::span<const int32_t> tokens; // that follow, one a row
  int64_t length = 0;              // rows, with these
  std::span<const int32_t> pages;  // its own, with room for these rows
  bool givesLogits = false;        // of its last row
};

/// One caller at a time.
class FeatureNetwork {
public:
  virtual ~FeatureNetwork() = default;
  virtual const DraftFacts &facts() const = 0;
  /// The last rows of entries that give logits, in their order. Entries with slots come first.
  virtual StatusOr<DraftRows> draft(std::span<const FeatureEntry> entries) = 0;
};

} // namespace dspark::llm
