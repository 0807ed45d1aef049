#include "runtime/serving/SampledRows.h"
#include <algorithm>

namespace dspark::serving {

StatusOr<const llm::Distribution *> SampledRows::distribution(size_t row) {
  DSPARK_RETURN_IF_ERROR(context.pipeline.run(sequence.owner->request.sampling, sequence.counts, rowOf(row),
                                              context.distribution));
  return &context.distribution;
}

StatusOr<int32_t> SampledRows::drawn(size_t row) {
  DSPARK_ASSIGN_OR_RETURN(const llm::Distribution *all, distribution(row));
  return drawnFrom(*all, row);
}

int32_t SampledRows::drawnFrom(const llm::Distribution &residual, size_t) {
  return llm::draw(residual, randomNumber(sequence, sequence.length(), llm::Purpose::Token));
}

double SampledRows::acceptance(size_t) {
  return randomNumber(sequence, sequence.length(), llm::Purpose::Accept);
}

// A row of NaN never gets here: its distribution was an error.
void SampledRows::addLogprobs(int32_t token) {
  const Request &request = sequence.owner->request;
  if (!request.logprobs)
    return;
  if (*request.logprobs == llm::LogprobMode::Raw)
    sequence.newLogprobs.push_back(*llm::rawLogprobs(rowOf(current), token, request.topLogprobs));
  else
    sequence.newLogprobs.push_back(llm::processedLogprobs(context.distribution, token, request.topLogprobs));
}

bool SampledRows::isStop(int32_t token) const {
  const Request &request = sequence.owner->request;
  if (context.tokenizer && !request.ignoreTokenizerStops && context.tokenizer->isStop(token))
    return true;
  return std::find(request.stopTokens.begin(), request.stopTokens.end(), token) != request.stopTokens.end();
}

bool SampledRows::commit(int32_t token) {
  addLogprobs(token);
  ++current;
  sequence.tokens.push_back(token);
  sequence.newTokens.push_back(token);
  if (sequence.owner->request.sampling.penalizes())
    sequence.counts.push(token);
  if (isStop(token))
    end(FinishReason::Stop);
  else if (sequence.detokenizer && sequence.stops.push(sequence.detokenizer->push(token), sequence.newText))
    sequence.finish = FinishReason::Stop; // the text is complete
  else if (sequence.length() - sequence.promptTokens() >= sequence.owner->mostTokens)
    end(FinishReason::Length);
  return sequence.finish == FinishReason::None;
}

// What was held back becomes text, unless it completes a stop string even now.
void SampledRows::end(FinishReason reason) {
  sequence.finish = reason;
  if (sequence.detokenizer && !sequence.stops.push(sequence.detokenizer->finish(), sequence.newText))
    sequence.newText += sequence.stops.finish();
}

} // namespace dspark::serving
