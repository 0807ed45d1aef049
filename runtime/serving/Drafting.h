// The engine's side of speculation: which sequences may be drafted for and how far, pages for the drafts, and
// what drafters are told. Without speculation it does nothing.
#pragma once
#include "runtime/llm/speculation/Speculation.h"
#include "runtime/serving/RequestSampling.h"
#include "runtime/serving/Step.h"

namespace dspark::serving {

class Drafting {
public:
  Drafting(std::unique_ptr<llm::Speculation> speculation, SamplingContext &context, llm::PageCache &cache)
      : speculation(std::move(speculation)), context(context), cache(cache) {}

  /// Adds drafts to the entries of sequences that decode, as far as `room` rows and the free pages go. Nobody
  /// is preempted for a draft.
  void plan(std::span<StepEntry> entries, int64_t room);
  /// What came of the step that was planned; `verifySeconds`: of the model and the sampling.
  void learn(std::span<const StepEntry> entries, double draftSeconds, double verifySeconds);

  /// The sequence's tokens have grown; the first time its prompt is new, too.
  void tell(Sequence &sequence);
  void forget(const Sequence &sequence);

  const llm::Speculation *get() const { return speculation.get(); }

private:
  int32_t limitOf(const Sequence &sequence) const;
  int32_t reserve(Sequence &sequence, int32_t drafts);

  std::unique_ptr<llm::Speculation> speculation;
  SamplingContext &context;
  llm::PageCache &cache;
  std::vector<llm::DecodingState> states;
  std::vector<RequestDraftPipeline> pipelines; // of the states
  std::vector<size_t> decoding;                // indices of entries
  std::vector<llm::Verdict> verdicts;
};

} // namespace dspark::serving
