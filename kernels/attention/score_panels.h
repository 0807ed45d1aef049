// Scores of rows by panels of keys. Included behind scoreTile<R, P>(q, size, panels, scores), of R rows by P
// panels, and kScoreSums, the sums of a tile.
#pragma once
#include "kernels/attention/register_tile.h"
#include "kernels/common/contract.h"

namespace dspark {
namespace {

/// As many panels at a time as fit the registers, then fewer.
template <int R, int P>
DSPARK_SIMD void scorePanels(const float *q, int64_t size, const float *panels, int64_t from, int64_t count,
                             float *scores) {
  for (; from + P <= count; from += P)
    scoreTile<R, P>(q, size, panels + from * size * kKeyPanel, scores + from * kKeyPanel);
  if constexpr (P > 1)
    scorePanels<R, P / 2>(q, size, panels, from, count, scores);
}
template <int R>
void scoreRows(const float *q, int64_t size, const float *panels, int64_t count, float *scores) {
  constexpr int P = vectorsPerTile(R, kScoreSums) / kPanelVectors;
  scorePanels<R, (P > 0 ? P : 1)>(q, size, panels, 0, count, scores);
}
template <int R>
void scoreRest(const float *q, int64_t rows, int64_t size, const float *panels, int64_t count,
               float *scores) {
  if constexpr (R > 0) {
    if (rows != R)
      return scoreRest<R - 1>(q, rows, size, panels, count, scores);
    scoreRows<R>(q, size, panels, count, scores);
  }
}

void scores(const float *q, int64_t rows, int64_t size, const float *panels, int64_t keys, float *scores) {
  DSPARK_EXPECTS(rows >= 0 && size >= 0 && keys >= 0 && keys <= kKeyBlock);
  DSPARK_EXPECTS(isReadable(q, rows * size) && isReadable(scores, rows * keys));
  int64_t r = 0, count = keys / kKeyPanel;
  for (; r + kTileRows <= rows; r += kTileRows)
    scoreRows<kTileRows>(q + r * size, size, panels, count, scores + r * kKeyBlock);
  scoreRest<kTileRows - 1>(q + r * size, rows - r, size, panels, count, scores + r * kKeyBlock);
}

} // namespace
} // namespace dspark
