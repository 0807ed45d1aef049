// What drafts could gain at most with a machine's step times: bounds that no policy passes.
#pragma once
#include "runtime/llm/speculation/CostTable.h"
#include "runtime/llm/speculation/LookupDrafter.h"
#include <functional>

namespace dspark {

/// Tokens per second by those of plain decoding, with `sequences` side by side at all times, of a drafter
/// that is always right and costs nothing: the best number of drafts, up to `longest` of each sequence.
double gainOfTruth(const llm::CostTable &steps, int32_t sequences, int32_t longest);

/// The same of lookup, by an oracle that knows at every place of an answer how many tokens of the draft will
/// stand, and verifies as many of them as make the whole answer fastest. Exact for one sequence; for several
/// it is what lines below the table's times allow, so no less than is possible.
class LookupOracle {
public:
  explicit LookupOracle(const llm::LookupOptions &options) : options(options) {}

  /// A prompt and the model's answer to it. Errors: those of the drafter.
  Status know(std::span<const int32_t> prompt, std::span<const int32_t> answer);
  double gain(const llm::CostTable &steps, int32_t sequences) const;

private:
  /// Of a sequence's share of a step, by its drafts.
  using StepShare = std::function<double(int32_t)>;
  double leastSeconds(const StepShare &share) const;

  llm::LookupOptions options;
  std::vector<std::vector<int32_t>> standing; // of each answer: tokens of the draft behind each of its tokens
};

} // namespace dspark
