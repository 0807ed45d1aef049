// A language model as everything that schedules it sees it: one function that advances a ragged batch of
// sequences over a paged key-value cache. PlanModel runs it from a plan; tests have small ones of their own.
#pragma once
#include "runtime/base/Status.h"
#include <cstdint>
#include <span>
#include <vector>

namespace dspark::llm {

struct ModelFacts {
  int32_t vocabulary = 0;    // logits per row
  int64_t contextLength = 0; // most tokens of one sequence
  int64_t pageSize = 0;      // tokens of one page
  int64_t pages = 0;         // that the cache has, numbered from 0
  int64_t pageBytes = 0;     // of one page, keys and values of all layers
  int64_t maxRows = 0;       // most rows of one batch
  int64_t window = 0;        // most tokens that a row sees in any layer, its own included; 0: all
};

/// What one step computes. Rows are tokens: chunks of prompts, decoded tokens and drafts to verify, side by
/// side. Those of sequence s are rows queryOffsets[s] to queryOffsets[s + 1], and they are the last ones of
/// its sequenceLengths[s] tokens. A row sees its sequence's tokens up to itself; the keys and values of all
/// earlier tokens must be in its pages.
struct ForwardBatch {
  std::span<const int32_t> tokens;          // [rows]
  std::span<const int32_t> queryOffsets;    // [sequences + 1], from 0 to rows
  std::span<const int32_t> sequenceLengths; // [sequences], this step's rows included
  std::span<const int32_t> blockTable; // [sequences][tablePages]: page of a sequence's tokens j * pageSize
                                       // ...; -1 where no row sees them, by the model's window
  int64_t tablePages = 0;
  std::span<const int32_t> logitRows; // the rows whose logits are wanted, ascending
};

/// One caller at a time.
class ForwardModel {
public:
  virtual ~ForwardModel() = default;

  virtual const ModelFacts &facts() const = 0;

  /// Writes keys and values of all rows to their pages, and gives logits [logitRows][vocabulary], valid until
  /// the next call. A row's logits do not depend, to the bit, on the other rows or on how its sequence was
  /// cut into steps. Errors: a batch that breaks the rules above, OutOfMemory. A failed step may have written
  /// the pages of its own rows, and nothing else.
  virtual StatusOr<std::span<const float>> forward(const ForwardBatch &batch) = 0;

  /// Copies a page's keys and values in all layers: copy on write of shared pages.
  virtual Status copyPage(int32_t from, int32_t to) = 0;
};

} // namespace dspark::llm
