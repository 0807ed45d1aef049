#include "runtime/serving/RequestSampling.h"

namespace dspark::serving {

double randomNumber(const Sequence &sequence, int64_t position, llm::Purpose purpose) {
  return llm::uniform({sequence.owner->request.sampling.seed, uint32_t(sequence.choice)}, uint64_t(position),
                      purpose);
}

StatusOr<llm::Distribution> RequestDraftPipeline::distribution(std::span<const float> logits,
                                                               std::span<const int32_t> drafted) const {
  const llm::SamplingParameters &parameters = sequence.owner->request.sampling;
  llm::Distribution result;
  for (size_t i = 0; parameters.penalizes() && i < drafted.size(); ++i)
    sequence.counts.push(drafted[i]);
  const Status status = context.pipeline.run(parameters, sequence.counts, logits, result);
  for (size_t i = drafted.size(); parameters.penalizes() && i-- > 0;)
    sequence.counts.pop(drafted[i]);
  if (!status.isOk())
    return status;
  return result;
}

int32_t RequestDraftPipeline::draw(const llm::Distribution &distribution,
                                   std::span<const int32_t> drafted) const {
  const int64_t position = sequence.length() + int64_t(drafted.size());
  return llm::draw(distribution, randomNumber(sequence, position, llm::Purpose::Draft));
}

} // namespace dspark::serving
