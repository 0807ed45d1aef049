#include "runtime/llm/speculation/LookupStore.h"
#include <algorithm>

namespace dspark::llm {
namespace {

constexpr int32_t kBoundary = -1;       // between texts: no token, so no match crosses it
constexpr size_t kRematchedTokens = 64; // of a text whose place was lost with a generation

} // namespace

void LookupStore::add(std::span<const int32_t> text) {
  const size_t kept = std::min(text.size(), size_t(std::max<int64_t>(generationTokens - 1, 0)));
  if (kept == 0)
    return;
  if (int64_t(younger.text().size() + kept) >= generationTokens) {
    older = std::move(younger);
    younger = SuffixAutomaton();
    ++generation;
  }
  for (int32_t token : text.last(kept))
    younger.append(token);
  younger.append(kBoundary);
}

void LookupStore::follow(Place &place, std::span<const int32_t> text, int32_t newTokens) const {
  size_t from = text.size() - size_t(newTokens);
  if (place.generation != generation) {
    place = {generation, {}, {}};
    from = std::min(from, text.size() - std::min(text.size(), kRematchedTokens));
  }
  for (int32_t token : text.subspan(from)) {
    place.younger = younger.extended(place.younger, token);
    place.older = older.extended(place.older, token);
  }
}

int32_t LookupStore::continuation(const Place &place, int32_t leastMatch, int32_t count,
                                  std::vector<int32_t> &out) const {
  if (place.generation != generation)
    return 0;
  const bool isYounger = place.younger.length >= place.older.length;
  const SuffixAutomaton::Match match = isYounger ? place.younger : place.older;
  if (match.length < std::max(leastMatch, 1))
    return 0;
  const size_t before = out.size();
  (isYounger ? younger : older).likeliestContinuation(match, count, out);
  const auto boundary = std::find(out.begin() + long(before), out.end(), kBoundary);
  out.erase(boundary, out.end());
  return out.size() > before ? match.length : 0;
}

} // namespace dspark::llm
