// The ragged batch of one step, put together sequence by sequence.
#pragma once
#include "runtime/llm/model/ForwardModel.h"
#include "runtime/serving/Step.h"

namespace dspark::serving {

class StepBatch {
public:
  void clear();
  /// Notes in the entry where its logits will be: those of its last pending row and of all drafts, unless
  /// more is pending.
  void add(StepEntry &entry);
  /// Valid until the next change.
  llm::ForwardBatch view();
  int64_t rows() const { return int64_t(tokens.size()); }

private:
  std::vector<int32_t> tokens, offsets, lengths, table, logitRows;
  std::vector<std::span<const int32_t>> pages; // of each sequence
};

} // namespace dspark::serving
