#include "runtime/llm/sampling/TokenCounts.h"

namespace dspark::llm {

TokenCounts::Entry &TokenCounts::entry(int32_t token) {
  const auto [place, added] = places.try_emplace(token, list.size());
  if (added)
    list.push_back({token});
  return list[place->second];
}

void TokenCounts::addPrompt(std::span<const int32_t> tokens) {
  for (int32_t token : tokens)
    entry(token).inPrompt = true;
}

} // namespace dspark::llm
