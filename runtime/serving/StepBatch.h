// The ragged batch of one step, put together sequence by sequence.
#pragma once
#include "runtime/llm/model/ForwardModel.h"
#include "runtime/serving/Sequence.h"

namespace dspark::serving {

class StepBatch {
public:
  void clear();
  /// The first `rows` of the sequence's pending tokens, then the drafts. Logits of the last of those rows and
  /// of all drafts are wanted if nothing is pending behind them. Returns the index of the first of these
  /// logits.
  int64_t add(const Sequence &sequence, int64_t rows, std::span<const int32_t> drafts);
  /// Valid until the next change.
  llm::ForwardBatch view();
  int64_t rows() const { return int64_t(tokens.size()); }

private:
  std::vector<int32_t> tokens, offsets, lengths, table, logitRows;
  std::vector<std::span<const int32_t>> pages; // of each sequence
};

} // namespace dspark::serving
