#include "kernels/matmul/matmul_plan.h"
#include "kernels/common/shares.h"
#include <algorithm>

namespace dspark {
namespace {

constexpr int64_t kPanelColumns = 16;

// The dim of `t` that lines up with batch dim d of `rank`, 1 where it has none.
int64_t batchDim(const TensorView &t, int d, int rank) {
  int own = std::max(t.rank - 2, 0), at = d - (rank - own);
  return at < 0 ? 1 : t.dim(at);
}

} // namespace

void MatmulPlan::read(const TensorView &a, const TensorView &b, const TensorView &y, bool transA, bool transB,
                      bool packed) {
  bool aIsVector = a.rank == 1, bIsVector = b.rank == 1;
  int64_t aRows = aIsVector ? 1 : a.dim(a.rank - 2), aColumns = a.dim(a.rank - 1);
  int64_t bRows = bIsVector ? b.dim(0) : b.dim(b.rank - 2), bColumns = bIsVector ? 1 : b.dim(b.rank - 1);
  transA = transA && !aIsVector;
  transB = transB && !bIsVector;
  m = transA ? aColumns : aRows;
  k = transA ? aRows : aColumns;
  n = transB ? bRows : bColumns;
  aRow = transA ? 1 : aColumns;
  aTerm = transA ? aColumns : 1;
  bTerm = transB ? 1 : bColumns;
  bColumn = transB ? bColumns : 1;
  isPacked = packed;

  int rank = std::max({a.rank - 2, b.rank - 2, 0});
  int64_t aStep = m * k, bStep = packed ? ceilOf(n, kPanelColumns) * kPanelColumns * k : n * k;
  batchRank = 0;
  batches = 1;
  for (int d = rank - 1; d >= 0; --d) {
    int64_t aDim = batchDim(a, d, rank), bDim = batchDim(b, d, rank), size = aDim == 1 ? bDim : aDim;
    // The strides are filled innermost first and turned round below.
    batchDims[batchRank] = size;
    aBatch[batchRank] = aDim == 1 ? 0 : aStep;
    bBatch[batchRank] = bDim == 1 ? 0 : bStep;
    aStep *= aDim;
    bStep *= bDim;
    batches *= size;
    if (size != 1)
      ++batchRank;
  }
  // Where all batches share one B and rows of A follow each other, they are one tall matrix.
  bool sharesB = std::all_of(bBatch, bBatch + batchRank, [](int64_t s) { return s == 0; });
  bool isDenseA = !transA && std::all_of(aBatch, aBatch + batchRank, [](int64_t s) { return s != 0; });
  if (sharesB && isDenseA) {
    m *= batches;
    batches = 1;
    batchRank = 0;
  }
  std::reverse(batchDims, batchDims + batchRank);
  std::reverse(aBatch, aBatch + batchRank);
  std::reverse(bBatch, bBatch + batchRank);
}

TileGrid cutProduct(int64_t m, int64_t n, int64_t k, int64_t batches, int64_t maxRows) {
  // Enough tiles for many threads, but below 100k flops a hand-over costs more than it saves.
  double flops = 2.0 * double(m) * double(n) * double(k) * double(batches);
  int64_t wanted = std::clamp<int64_t>(int64_t(flops / 200e3), 1, 16) / std::clamp<int64_t>(batches, 1, 16);
  int64_t panels = std::max<int64_t>(ceilOf(n, kPanelColumns), 1);
  TileGrid grid = {std::max<int64_t>(ceilOf(m, maxRows), 1), 1, n > m};
  if (grid.rows >= wanted)
    return grid;
  // Wide results are cut by columns, where each weight is read by one tile only; what is left is cut by rows.
  grid.columns = std::clamp<int64_t>(wanted / grid.rows, 1, ceilOf(panels, 4));
  grid.rows = std::clamp<int64_t>(wanted / grid.columns, grid.rows, std::max(ceilOf(m, 24), grid.rows));
  grid.rows += grid.rows > 1 && grid.rows * grid.columns % 2 == 1; // two threads have as many tiles
  return grid;
}

uint32_t MatmulPlan::cut(int64_t maxRows) {
  grid = cutProduct(m, n, k, batches, maxRows);
  return uint32_t(std::min<int64_t>(batches * grid.rows * grid.columns, UINT32_MAX));
}

void MatmulPlan::offsets(int64_t batch, int64_t &aOffset, int64_t &bOffset) const {
  aOffset = bOffset = 0;
  for (int d = batchRank - 1; d >= 0; --d) {
    int64_t index = batch % batchDims[d];
    batch /= batchDims[d];
    aOffset += index * aBatch[d];
    bOffset += index * bBatch[d];
  }
}

MatmulRange matmulTile(const MatmulPlan &plan, uint32_t tile, int64_t sideBySide) {
  const TileGrid &grid = plan.grid;
  int64_t tiles = grid.rows * grid.columns, panels = ceilOf(plan.n, kPanelColumns);
  auto [row, column] = grid.place(tile % tiles);
  MatmulRange range;
  range.batch = tile / tiles;
  range.row = plan.m * row / grid.rows;
  range.rows = plan.m * (row + 1) / grid.rows - range.row;
  range.column = panels * column / grid.columns * kPanelColumns;
  range.columns =
      std::min(panels * (column + sideBySide) / grid.columns * kPanelColumns, plan.n) - range.column;
  return range;
}

} // namespace dspark
