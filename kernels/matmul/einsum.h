// The subscripts of an einsum equation as numbers, e.g. "bij,bjk->bik". Shared by the shape function and the
// kernel.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace dspark {

inline constexpr int kMaxEinsumOperands = 8;
inline constexpr int kMaxEinsumRank = 12;

struct Einsum {
  int labels = 0; // distinct subscripts; those of the result come first, then the summed ones
  int resultRank = 0;
  uint8_t operand[kMaxEinsumOperands][kMaxEinsumRank]; // label of each dim; an ellipsis has a label per dim
  uint8_t result[kMaxEinsumRank];

  /// Null, or what is wrong. `ranks` has one entry per operand, each at most kMaxEinsumRank.
  const char *parse(std::string_view equation, std::span<const int> ranks);
};

} // namespace dspark
