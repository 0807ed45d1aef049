#include "runtime/llm/speculation/DraftChoice.h"
#include <algorithm>

namespace dspark::llm {
namespace {

/// What drafting up to `length` tokens by an option promises, where it promises more than the free draft.
DraftChoice tryLength(std::span<const Estimates> freeDrafts, const DraftOption &option, int32_t length,
                      const StepSeconds &verify) {
  DraftChoice choice{.length = length, .drafts = std::vector<uint8_t>(freeDrafts.size(), 0)};
  std::vector<Estimates> estimates(freeDrafts.begin(), freeDrafts.end());
  int32_t drafting = 0;
  for (size_t s = 0; s < freeDrafts.size(); ++s) {
    Estimates expected = option.expected[s];
    expected.resize(std::min(expected.size(), size_t(length)));
    if (expectedAccepted(expected) <= expectedAccepted(freeDrafts[s]))
      continue;
    estimates[s] = std::move(expected);
    choice.drafts[s] = 1;
    choice.draftSeconds += option.backlogSeconds[s];
    ++drafting;
  }
  if (drafting == 0)
    return choice;
  choice.draftSeconds += option.cost->seconds(drafting, length);
  choice.tokensPerSecond = scheduleBest(estimates, later(verify, choice.draftSeconds)).tokensPerSecond;
  return choice;
}

size_t nextLength(size_t length, size_t longest) {
  return length == longest ? 0 : std::min(length < 8 ? length + 1 : length + length / 2, longest);
}

} // namespace

DraftChoice chooseDrafts(std::span<const Estimates> freeDrafts, std::span<const DraftOption> options,
                         const StepSeconds &verify) {
  DraftChoice best{.drafts = std::vector<uint8_t>(freeDrafts.size(), 0)};
  best.tokensPerSecond = scheduleBest(freeDrafts, verify).tokensPerSecond;
  for (size_t o = 0; o < options.size(); ++o) {
    size_t longest = 0;
    for (const Estimates &expected : options[o].expected)
      longest = std::max(longest, expected.size());
    // 1 2 3 4 6 8 12 18 ... and the longest: between them the predicted rate changes by less than it is
    // known.
    for (size_t length = std::min<size_t>(longest, 1); length > 0; length = nextLength(length, longest)) {
      DraftChoice choice = tryLength(freeDrafts, options[o], int32_t(length), verify);
      choice.option = int(o);
      if (choice.tokensPerSecond > best.tokensPerSecond)
        best = std::move(choice);
    }
  }
  return best;
}

} // namespace dspark::llm
