// A distribution over tokens after the whole sampling pipeline (penalties, temperature, cuts): what is drawn
// from, what verification of drafts compares, and what a drafter says its own draw came from.
#pragma once
#include <cstdint>
#include <vector>

namespace dspark::llm {

/// Tokens of probability 0 are left out. Greedy decoding is one token of probability 1.
struct Distribution {
  std::vector<int32_t> tokens;      // ascending
  std::vector<float> probabilities; // of the same tokens; their sum is 1 up to rounding
};

} // namespace dspark::llm
