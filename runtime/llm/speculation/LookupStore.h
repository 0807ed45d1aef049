// Texts of finished requests that later ones may repeat, in bounded memory.
#pragma once
#include "runtime/llm/speculation/SuffixAutomaton.h"

namespace dspark::llm {

/// Two generations of texts, each of half the capacity: when the younger is full the older one goes. What is
/// read from it shows in the speed of other requests, so texts of different owners want different stores.
class LookupStore {
public:
  /// In tokens; 0: nothing is kept.
  explicit LookupStore(int64_t capacity) : generationTokens(capacity / 2) {}

  /// Keeps the last tokens of a text, as many as a generation takes.
  void add(std::span<const int32_t> text);

  /// Where a text that grows has come to in both generations.
  struct Place {
    int64_t generation = -1; // of the younger one
    SuffixAutomaton::Match younger, older;
  };
  void follow(Place &place, std::span<const int32_t> text, int32_t newTokens) const;

  /// Continues the longer of both matches by what followed most often, if it is of `leastMatch` at least.
  /// Returns its length.
  int32_t continuation(const Place &place, int32_t leastMatch, int32_t count,
                       std::vector<int32_t> &out) const;

private:
  int64_t generationTokens;
  int64_t generation = 0;
  SuffixAutomaton younger, older;
};

} // namespace dspark::llm
