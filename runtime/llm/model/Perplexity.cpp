#include "runtime/llm/model/Perplexity.h"
#include <algorithm>
#include <cmath>
#include <numeric>

namespace dspark::llm {
namespace {

constexpr int64_t kRowsPerStep = 128; // bounds the logits: 128 rows of a vocabulary of 262,144 are 134 MB

// -log softmax(logits)[token], in f64.
double surprise(std::span<const float> logits, int32_t token) {
  float largest = *std::ranges::max_element(logits);
  double sum = 0;
  for (float logit : logits)
    sum += std::exp(double(logit) - double(largest));
  return std::log(sum) + double(largest) - double(logits[size_t(token)]);
}

class Meter {
public:
  Meter(ForwardModel &model, const PerplexityOptions &options) : model(model), options(options) {
    int64_t pages = (options.context + model.facts().pageSize - 1) / model.facts().pageSize;
    table.resize(size_t(pages));
    std::iota(table.begin(), table.end(), 0);
  }

  Status chunk(std::vector<int32_t> tokens) {
    if (options.beginToken >= 0)
      tokens[0] = options.beginToken;
    int64_t rows = std::min(kRowsPerStep, model.facts().maxRows);
    for (int64_t first = 0; first < options.context; first += rows)
      DSPARK_RETURN_IF_ERROR(step(tokens, first, std::min(rows, options.context - first)));
    return Status::ok();
  }

  PerplexityResult result(int64_t chunks) const {
    double mean = sum / double(count), variance = squares / double(count) - mean * mean;
    double perplexity = std::exp(mean);
    double error = count > 1 ? std::sqrt(std::max(variance, 0.0) / double(count - 1)) * perplexity : 0;
    return {perplexity, error, chunks, count};
  }

private:
  // Rows whose next token counts have logits.
  Status step(const std::vector<int32_t> &tokens, int64_t first, int64_t rows) {
    wanted.clear();
    for (int64_t row = 0; row < rows; ++row)
      if (first + row >= options.context / 2 && first + row + 1 < options.context)
        wanted.push_back(int32_t(row));
    const int32_t offsets[] = {0, int32_t(rows)}, length[] = {int32_t(first + rows)};
    ForwardBatch batch{std::span(tokens).subspan(size_t(first), size_t(rows)),
                       offsets,
                       length,
                       table,
                       int64_t(table.size()),
                       wanted};
    DSPARK_ASSIGN_OR_RETURN(auto logits, model.forward(batch));
    size_t width = size_t(model.facts().vocabulary);
    for (size_t i = 0; i < wanted.size(); ++i) {
      double value = surprise(logits.subspan(i * width, width), tokens[size_t(first + wanted[i] + 1)]);
      if (!std::isfinite(value))
        return {Code::Mismatch,
                "the logits of token " + std::to_string(first + wanted[i]) + " are not finite"};
      sum += value;
      squares += value * value;
      ++count;
    }
    return Status::ok();
  }

  ForwardModel &model;
  const PerplexityOptions &options;
  std::vector<int32_t> table, wanted;
  double sum = 0, squares = 0;
  int64_t count = 0;
};

} // namespace

StatusOr<PerplexityResult> measurePerplexity(ForwardModel &model, std::span<const int32_t> tokens,
                                             const PerplexityOptions &options) {
  const ModelFacts &facts = model.facts();
  int64_t most = std::min(facts.contextLength, facts.pages * facts.pageSize);
  if (options.context < 4 || options.context > most)
    return invalidArgument("context is " + std::to_string(options.context) + ", expected 4 to " +
                           std::to_string(most));
  int64_t chunks = int64_t(tokens.size()) / options.context;
  if (options.chunks > 0)
    chunks = std::min(chunks, options.chunks);
  if (chunks == 0)
    return invalidArgument("the text has " + std::to_string(tokens.size()) + " tokens, expected at least " +
                           std::to_string(options.context));
  Meter meter(model, options);
  for (int64_t i = 0; i < chunks; ++i) {
    auto first = tokens.begin() + std::ptrdiff_t(i * options.context);
    DSPARK_RETURN_IF_ERROR(meter.chunk({first, first + std::ptrdiff_t(options.context)}));
    if (options.onChunk)
      options.onChunk(i + 1, chunks, meter.result(i + 1).perplexity);
  }
  return meter.result(chunks);
}

} // namespace dspark::llm
