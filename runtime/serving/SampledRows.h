// Rows of logits to tokens of one sequence, by its request's own sampling: the answers that verification of
// drafts asks for. A step without drafts is a verification of none.
#pragma once
#include "runtime/llm/speculation/Verification.h"
#include "runtime/serving/RequestSampling.h"

namespace dspark::serving {

class SampledRows final : public llm::VerifiedSequence {
public:
  /// `logits` [rows][vocabulary]: after the last committed token, and after each draft.
  SampledRows(SamplingContext &context, Sequence &sequence, std::span<const float> logits, int32_t vocabulary)
      : context(context), sequence(sequence), logits(logits), vocabulary(size_t(vocabulary)) {}

  StatusOr<int32_t> drawn(size_t row) override;
  StatusOr<const llm::Distribution *> distribution(size_t row) override;
  int32_t drawnFrom(const llm::Distribution &residual, size_t row) override;
  double acceptance(size_t row) override;
  bool commit(int32_t token) override;

private:
  std::span<const float> rowOf(size_t row) const { return logits.subspan(row * vocabulary, vocabulary); }
  void addLogprobs(int32_t token);
  bool isStop(int32_t token) const;
  void end(FinishReason reason);

  SamplingContext &context;
  Sequence &sequence;
  std::span<const float> logits;
  size_t vocabulary;
  size_t current = 0; // the row whose token comes next
};

} // namespace dspark::serving
