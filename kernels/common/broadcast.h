// Iteration of elementwise kernels over broadcast operands. The result's dims are collapsed to as few as
// describe every operand, and kernels then see flat blocks of consecutive results, for which each operand is
// a pointer to as many consecutive elements, or to one element that serves them all.
#pragma once
#include "kernels/common/kernel.h"
#include <algorithm>

namespace dspark {

/// Results per tile: 64 KiB of f32. A multiple of 64, so that tiles never share a byte of packed elements.
inline constexpr int64_t kElementwiseTile = 16384;
/// Blocks of short rows are gathered into buffers of so many elements.
inline constexpr int64_t kGatherBlock = 512;
/// Rows of at least this many elements are used where they lie.
inline constexpr int64_t kLongRow = 256;

/// Collapsed loops: dims[rank - 1] is innermost. Every rank is at least 1. `strides` are in elements; the
/// innermost is 0 or 1.
template <int kOperands> struct BroadcastLoops {
  int64_t total = 0;
  int rank = 1;
  int64_t dims[kMaxRank];
  int64_t strides[kOperands][kMaxRank];
};

/// Collapses the loops of operands that broadcast to out's dims. `strides` has kMaxRank entries per operand.
/// Returns the rank.
int collapseLoops(const TensorView &out, std::span<const TensorView> operands, int64_t *dims,
                  int64_t (*strides)[kMaxRank]);

template <int kOperands>
void collapseLoops(const TensorView &out, std::span<const TensorView> operands,
                   BroadcastLoops<kOperands> &loops) {
  loops.total = out.elements();
  loops.rank = collapseLoops(out, operands, loops.dims, loops.strides);
}

/// One operand's elements for a block of results.
struct BlockOperand {
  const void *data;
  bool isScalar; // one element serves the whole block
};

/// Reads one operand block by block. Elements that are neither consecutive nor all the same are gathered.
class BlockReader {
public:
  BlockReader() {} // left uninitialised, as kernels of a few elements would feel the cost
  /// `buffer` has room for kGatherBlock elements and belongs to this reader alone.
  BlockReader(const void *base, size_t elementBytes, const int64_t *dims, const int64_t *strides, int rank,
              void *buffer);

  /// Elements [begin, begin + n); valid until the next call.
  BlockOperand read(int64_t begin, int64_t n);

private:
  BlockOperand gather(int64_t begin, int64_t n);

  const std::byte *base;
  size_t elementBytes;
  const int64_t *dims, *strides;
  int rank;
  void *buffer;
  int64_t run;     // results from an aligned one on whose elements are consecutive, or all the same
  bool repeatsRow; // the same row for every index of the outer dims
  int64_t held;    // if so: elements in the buffer, from the start of a row on
};

/// The length of the block that starts at `begin`. Blocks of short rows end with a row where they can, so
/// that an operand that repeats its row is gathered once.
inline int64_t blockLength(int64_t begin, int64_t end, int64_t innerDim, int64_t most) {
  int64_t first = begin % innerDim;
  if (innerDim >= kLongRow)
    return std::min({end - begin, innerDim - first, most});
  return std::min(end - begin, (kGatherBlock + first) / innerDim * innerDim - first);
}

/// Calls body(operands, begin, n) for consecutive blocks of the results [begin, end) of tiles
/// [part.begin, part.end). Elements have at most 16 bytes; n is at most `most`, which is at least
/// kGatherBlock.
template <int kOperands, typename Body>
void forBlocks(const BroadcastLoops<kOperands> &loops, std::span<const TensorView> operands,
               const KernelPart &part, int64_t most, Body body) {
  alignas(64) std::byte buffers[kOperands][kGatherBlock * 16];
  BlockReader readers[kOperands];
  for (int k = 0; k < kOperands; ++k) {
    const TensorView &view = operands[size_t(k)];
    readers[k] = BlockReader(view.data, size_t(dtypeBits(view.type)) / 8, loops.dims, loops.strides[k],
                             loops.rank, buffers[k]);
  }
  int64_t end = std::min(loops.total, int64_t(part.end) * kElementwiseTile);
  for (int64_t i = int64_t(part.begin) * kElementwiseTile, n; i < end; i += n) {
    n = blockLength(i, end, loops.dims[loops.rank - 1], most);
    BlockOperand block[kOperands];
    for (int k = 0; k < kOperands; ++k)
      block[k] = readers[k].read(i, n);
    body(block, i, n);
  }
}

/// The same without broadcasting: calls body(begin, n) for the part's share of `total` elements, at most
/// `most` at a time.
template <typename Body> void forElements(int64_t total, const KernelPart &part, int64_t most, Body body) {
  int64_t end = std::min(total, int64_t(part.end) * kElementwiseTile);
  for (int64_t i = int64_t(part.begin) * kElementwiseTile; i < end; i += most)
    body(i, std::min(most, end - i));
}

/// Tiles, bytes and flops of an elementwise operation on the call's operands.
void prepareElementwise(const KernelCall &call, KernelWork &work, double flopsPerElement);

} // namespace dspark
