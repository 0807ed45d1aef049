// Sizes of the register tiles of attention's loops.
#pragma once
#include "kernels/attention/attention_core.h"
#include "kernels/common/vector_math.h"

namespace dspark {
namespace {

using namespace simd;

constexpr int kPanelVectors = int(kKeyPanel) / kLanes;

/// Rows of a tile, and how many vectors are beside so many of them, of about so many sums.
constexpr int kTileRows = 6;
constexpr int vectorsPerTile(int rows, int sums) {
  int vectors = sums / rows;
  return vectors >= 8 ? 8 : vectors >= 4 ? 4 : 2;
}

} // namespace
} // namespace dspark
