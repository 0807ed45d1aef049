// A request's sampling as the engine applies it: scratch memory, random numbers, and the pipeline that
// drafters with a model of their own draw through.
#pragma once
#include "runtime/llm/sampling/Pipeline.h"
#include "runtime/llm/speculation/Drafter.h"
#include "runtime/serving/Sequence.h"

namespace dspark::serving {

/// What all sequences share: the tokenizer (null: no text) and scratch memory.
struct SamplingContext {
  const llm::Tokenizer *tokenizer = nullptr;
  llm::SamplingPipeline pipeline = {};
  llm::Distribution distribution = {};
};

/// Of the token at `position` of the sequence, prompt included.
double randomNumber(const Sequence &sequence, int64_t position, llm::Purpose purpose);

/// Penalties see the drafted tokens as they will see them if these are accepted.
class RequestDraftPipeline final : public llm::DraftPipeline {
public:
  RequestDraftPipeline(SamplingContext &context, Sequence &sequence) : context(context), sequence(sequence) {}

  StatusOr<llm::Distribution> distribution(std::span<const float> logits,
                                           std::span<const int32_t> drafted) const override;
  int32_t draw(const llm::Distribution &distribution, std::span<const int32_t> drafted) const override;

private:
  SamplingContext &context;
  Sequence &sequence;
};

} // namespace dspark::serving
