#include "runtime/serving/StepBatch.h"
#include <algorithm>

namespace dspark::serving {

void StepBatch::clear() {
  tokens.clear();
  offsets.assign(1, 0);
  lengths.clear();
  logitRows.clear();
  pages.clear();
}

void StepBatch::add(StepEntry &entry) {
  const Sequence &sequence = *entry.sequence;
  const int64_t computed = sequence.cache.length();
  const auto drafts = entry.draftTokens();
  const auto first = sequence.tokens.begin() + computed;
  entry.firstLogits = int64_t(logitRows.size());
  tokens.insert(tokens.end(), first, first + entry.rows);
  if (computed + entry.rows == sequence.length())
    for (int32_t row = int32_t(tokens.size()) - 1, last = row + int32_t(drafts.size()); row <= last; ++row)
      logitRows.push_back(row);
  tokens.insert(tokens.end(), drafts.begin(), drafts.end());
  offsets.push_back(int32_t(tokens.size()));
  lengths.push_back(int32_t(computed + entry.rows) + int32_t(drafts.size()));
  pages.push_back(sequence.cache.pages());
}

llm::ForwardBatch StepBatch::view() {
  size_t width = 0;
  for (const auto &row : pages)
    width = std::max(width, row.size());
  table.assign(pages.size() * width, 0);
  for (size_t i = 0; i < pages.size(); ++i)
    std::copy(pages[i].begin(), pages[i].end(), table.begin() + int64_t(i * width));
  return {tokens, offsets, lengths, table, int64_t(width), logitRows};
}

} // namespace dspark::serving
