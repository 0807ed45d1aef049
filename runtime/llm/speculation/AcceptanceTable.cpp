#include "runtime/llm/speculation/AcceptanceTable.h"
#include "runtime/llm/speculation/Logistic.h"
#include <bit>

namespace dspark::llm {
namespace {

constexpr float kHorizon = 200;     // outcomes of a cell after which evidence has faded to 1/e
constexpr float kPriorOutcomes = 4; // that a neighbour counts for
// Logits that a class of match or position is expected to be better than the one before: 0.5 for the weakest
// match makes 0.82 of 5 tokens, 0.96 of 65.
constexpr float kBetter = 0.3f;

} // namespace

/// 0 1 2 3 4 5-6 7-8 9-12 13-16 17-32 33-64 65-
int AcceptanceTable::matchClass(int32_t match) {
  if (match <= 4)
    return std::max(match, 0);
  if (match <= 16)
    return match <= 6 ? 5 : match <= 8 ? 6 : match <= 12 ? 7 : 8;
  return match <= 32 ? 9 : match <= 64 ? 10 : 11;
}

int32_t AcceptanceTable::leastOfClass(int32_t match) {
  static constexpr int32_t kLeast[kMatches] = {0, 1, 2, 3, 4, 5, 7, 9, 13, 17, 33, 65};
  return kLeast[matchClass(match)];
}

/// 0 to 7 one by one, then four classes per doubling up to 31; all later ones are the last.
int AcceptanceTable::positionClass(int32_t position) {
  if (position < 8)
    return position;
  const int doubling = std::min(int(std::bit_width(uint32_t(position))) - 4, 2); // 8-15: 0, 16-31: 1, ...
  return doubling == 2 ? kPositions - 1 : 8 + 4 * doubling + ((position >> (doubling + 1)) & 3);
}

float AcceptanceTable::estimate(int32_t match, int32_t position) const {
  const int lastMatch = matchClass(match), lastPosition = positionClass(position);
  float expected = prior;
  const auto refine = [&](const Cell &cell) {
    expected = (cell.accepted + kPriorOutcomes * expected) / (cell.seen + kPriorOutcomes);
  };
  refine(cells[0][0]);
  for (int m = 1; m <= lastMatch; ++m) {
    expected = shifted(expected, kBetter);
    refine(cells[size_t(m)][0]);
  }
  for (int p = 1; p <= lastPosition; ++p) {
    expected = shifted(expected, kBetter);
    refine(cells[size_t(lastMatch)][size_t(p)]);
  }
  return expected;
}

void AcceptanceTable::learn(int32_t match, int32_t position, bool accepted) {
  Cell &cell = cells[size_t(matchClass(match))][size_t(positionClass(position))];
  cell.accepted += float(accepted) - cell.accepted / kHorizon;
  cell.seen += 1 - cell.seen / kHorizon;
}

} // namespace dspark::llm
