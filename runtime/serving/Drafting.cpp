#include "runtime/serving/Drafting.h"
#include <algorithm>
#include <limits>

namespace dspark::serving {

// The last token of the output needs no draft: the step's own row gives it.
int32_t Drafting::limitOf(const Sequence &sequence) const {
  const int64_t left = sequence.owner->mostTokens - (sequence.length() - sequence.promptTokens());
  return int32_t(std::clamp<int64_t>(left - 1, 0, std::numeric_limits<int32_t>::max()));
}

void Drafting::plan(std::span<StepEntry> entries, int64_t room) {
  if (!speculation)
    return;
  states.clear();
  pipelines.clear();
  decoding.clear();
  pipelines.reserve(entries.size()); // the states point to them
  int64_t otherRows = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    Sequence &sequence = *entries[i].sequence;
    if (sequence.pending() > 1 || sequence.toldTokens == 0) {
      otherRows += entries[i].rows;
      continue;
    }
    pipelines.emplace_back(context, sequence);
    const bool likeliest = sequence.owner->request.sampling.plainGreedy();
    const int32_t limit = limitOf(sequence);
    // For drafters that compute in these pages; where they do not suffice, no further is drafted.
    reserve(sequence, std::min(limit, speculation->longestInTargetPages()));
    states.push_back({sequence.id, sequence.length(), limit, likeliest ? nullptr : &pipelines.back(),
                      sequence.cache.pages()});
    decoding.push_back(i);
  }
  const auto planned = speculation->plan(states, {otherRows, room});
  for (size_t i = 0; i < decoding.size(); ++i) {
    StepEntry &entry = entries[decoding[i]];
    entry.draft = &planned[i].draft;
    entry.drafts = reserve(*entry.sequence, planned[i].length);
  }
}

// Where the pages do not suffice, as many as fit into those of the step. That looks at no token, so it keeps
// the output unbiased (Verification.h).
int32_t Drafting::reserve(Sequence &sequence, int32_t drafts) {
  if (drafts == 0)
    return 0;
  const auto reserved = cache.reserve(sequence.cache, 1 + drafts);
  if (reserved.isOk() && *reserved)
    return drafts;
  const int64_t places = int64_t(sequence.cache.pages().size()) * cache.pageSize();
  return std::min(drafts, int32_t(places - sequence.cache.length() - 1));
}

void Drafting::learn(std::span<const StepEntry> entries, double draftSeconds, double verifySeconds) {
  if (!speculation)
    return;
  verdicts.clear();
  for (size_t i : decoding)
    verdicts.push_back(entries[i].verdict);
  speculation->learn(verdicts, {draftSeconds, verifySeconds});
}

void Drafting::tell(Sequence &sequence) {
  if (!speculation || !sequence.owner->request.speculate)
    return;
  if (sequence.toldTokens == 0)
    speculation->begin(sequence.id);
  speculation->append(sequence.id, std::span(sequence.tokens).subspan(size_t(sequence.toldTokens)));
  sequence.toldTokens = sequence.length();
}

void Drafting::forget(const Sequence &sequence) {
  if (speculation && sequence.toldTokens > 0)
    speculation->forget(sequence.id);
}

} // namespace dspark::serving
