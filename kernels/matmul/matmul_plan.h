// How a matmul call is laid out and cut: sizes, batch strides and tiles. Worked out once per shape, kept in
// KernelWork::state.
#pragma once
#include "kernels/common/kernel.h"
#include "kernels/matmul/epilogue.h"

namespace dspark {

/// p + n, or null for the null data that a tensor without elements may have.
template <typename T> T *past(T *p, int64_t n) { return p ? p + n : p; }

/// How a product [m, k] x [k, n] is cut into tiles. Threads take tiles that follow each other, so these share
/// the larger operand's part, which then one thread reads.
struct TileGrid {
  int64_t rows, columns; // of tiles
  bool isRowFirst;       // tiles of the same columns follow each other

  struct Place {
    int64_t row, column;
  };
  Place place(int64_t tile) const {
    return isRowFirst ? Place{tile % rows, tile / rows} : Place{tile / columns, tile % columns};
  }
  /// Cuts tiles [begin, end) of any number of such grids into runs of tiles that lie side by side, which as
  /// one read rows of A once: calls f(the first one, how many).
  template <typename F> void forEachRun(uint32_t begin, uint32_t end, F f) const {
    for (uint32_t tile = begin, count; tile < end; tile += count) {
      Place first = place(tile % (rows * columns)), next;
      count = 0;
      do {
        ++count;
        next = place((tile + count) % (rows * columns));
      } while (tile + count < end && next.row == first.row && next.column == first.column + count);
      f(tile, int64_t(count));
    }
  }
};
/// For `batches` products: by rows (at most maxRows each) and by panels of 16 columns.
TileGrid cutProduct(int64_t m, int64_t n, int64_t k, int64_t batches, int64_t maxRows);

struct MatmulPlan {
  int64_t m, n, k;
  int64_t aRow, aTerm;    // strides in elements, within one matrix
  int64_t bTerm, bColumn; // of row-major B; unused when packed
  bool isPacked;
  int batchRank;                              // dims left after folding
  int64_t batchDims[kMaxRank];                // outermost first
  int64_t aBatch[kMaxRank], bBatch[kMaxRank]; // strides in elements, 0 where broadcast
  int64_t batches;
  TileGrid grid; // per batch
  Epilogue epilogue;

  /// Sizes and strides of a @ b; `packedColumns` is what a packed B's columns are rounded up to.
  void read(const TensorView &a, const TensorView &b, const TensorView &y, bool transA, bool transB,
            bool packed);
  /// Cuts the work into tiles of at most `maxRows` rows.
  uint32_t cut(int64_t maxRows);
  /// Offsets of batch i in A and B.
  void offsets(int64_t batch, int64_t &aOffset, int64_t &bOffset) const;
};

/// The share of one tile, or of some that lie side by side.
struct MatmulRange {
  int64_t batch, row, rows, column, columns;
};
MatmulRange matmulTile(const MatmulPlan &plan, uint32_t tile, int64_t sideBySide = 1);

} // namespace dspark
