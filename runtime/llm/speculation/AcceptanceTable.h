// How often drafts were accepted, by how strong their evidence was and by position: what stands in for a
// confidence where a drafter has none (lookups), and what is expected of a drafter before it has drafted.
#pragma once
#include <array>
#include <cstdint>

namespace dspark::llm {

/// Cells are the means of Beta distributions whose evidence fades. A cell's prior is its neighbour: the
/// position before, for the first position the next weaker match; so what was never seen is expected to go on
/// as what was.
class AcceptanceTable {
public:
  /// `prior`: acceptance of the weakest match before anything is known.
  explicit AcceptanceTable(float prior = 0.5f) : prior(prior) {}

  /// The probability that position `position` is accepted if all before it are.
  float estimate(int32_t match, int32_t position) const;

  void learn(int32_t match, int32_t position, bool accepted);

  /// The least match of those that are counted together with this one.
  static int32_t leastOfClass(int32_t match);

private:
  struct Cell {
    float accepted = 0, seen = 0;
  };
  static constexpr int kMatches = 12, kPositions = 16;
  static int matchClass(int32_t match);
  static int positionClass(int32_t position);

  float prior;
  std::array<std::array<Cell, kPositions>, kMatches> cells{};
};

} // namespace dspark::llm
