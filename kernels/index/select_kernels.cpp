// Nonzero and compress: the kernel finds out how large the result is, writes it densely, and says so in
// outDims.
#include "kernels/common/byte_tiles.h"
#include "kernels/common/operand.h"
#include "kernels/index/rows.h"
#include "kernels/movement/strided_copy.h"

namespace dspark::index_ops {
namespace {

// --- nonzero: phase 0 counts per tile, phase 1 writes behind the counts of the tiles before ---

void prepareNonZero(const KernelCall &call, KernelWork &work) {
  uint32_t tiles = tilesForBytes(call.in[0].elements() * 2);
  work.phases = 2;
  work.tiles[0] = work.tiles[1] = tiles;
  work.scratchShared = tiles * sizeof(int64_t);
  work.bytes = double(dtypeBytes(call.in[0].type, call.in[0].elements()));
}

template <typename T> void countNonZero(const T *x, const KernelPart &part, int64_t count, uint32_t tiles) {
  int64_t *counts = reinterpret_cast<int64_t *>(part.shared);
  for (uint32_t tile = part.begin; tile < part.end; ++tile) {
    KernelPart one = part;
    one.begin = tile;
    one.end = tile + 1;
    RowRange range(count, tiles, one);
    int64_t n = 0;
    for (int64_t k = range.begin; k < range.end; ++k)
      n += x[k] != T(0);
    counts[tile] = n;
  }
}

// Column `column` of the result [rank, total] gets the coordinates of element k.
void writeCoordinates(const TensorView &x, int64_t k, int64_t *y, int64_t column, int64_t total) {
  if (x.rank == 0)
    y[column] = 0;
  for (int i = x.rank - 1; i >= 0; --i) {
    y[i * total + column] = k % x.dims[i];
    k /= x.dims[i];
  }
}

void runNonZero(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const TensorView &x = call.in[0];
  int64_t count = x.elements();
  uint32_t tiles = work.tiles[0];
  dispatchNumber(x.type, [&]<typename T>() {
    if (part.phase == 0)
      return countNonZero(x.as<const T>(), part, count, tiles);
    const int64_t *counts = reinterpret_cast<const int64_t *>(part.shared);
    int64_t column = 0, total = 0;
    for (uint32_t tile = 0; tile < tiles; ++tile) {
      column += tile < part.begin ? counts[tile] : 0;
      total += counts[tile];
    }
    RowRange range(count, tiles, part);
    for (int64_t k = range.begin; k < range.end; ++k)
      if (x.as<const T>()[k] != T(0))
        writeCoordinates(x, k, call.out[0].as<int64_t>(), column++, total);
    if (part.begin == 0 && call.outDims) {
      call.outDims[0][0] = std::max(x.rank, 1);
      call.outDims[0][1] = total;
    }
  });
}

bool acceptsNonZero(const KernelCall &call) { return isPlainNumber(call.in[0].type); }

// --- compress: keeps the entries of one axis (or of all elements in a row) whose flag is set ---

bool acceptsCompress(const KernelCall &call) { return dtypeBits(call.in[0].type) >= 8; }

void prepareCompress(const KernelCall &call, KernelWork &work) {
  work.bytes = double(dtypeBytes(call.in[0].type, call.in[0].elements())) * 2;
}

void runCompress(const KernelCall &call, const KernelWork &, const KernelPart &) {
  const TensorView &x = call.in[0], &flags = call.in[1], &y = call.out[0];
  bool hasAxis = call.attrs.has("axis");
  int64_t axis = call.attrs.i("axis", 0);
  axis += axis < 0 ? x.rank : 0;
  int64_t outer = hasAxis ? x.elements(0, int(axis)) : 1, size = hasAxis ? x.dims[axis] : x.elements();
  int64_t bytes = (hasAxis ? x.elements(int(axis) + 1, x.rank) : 1) * (dtypeBits(x.type) / 8);
  int64_t length = std::min(size, flags.elements()), kept = 0;
  for (int64_t i = 0; i < length; ++i)
    kept += flags.as<const uint8_t>()[i] != 0;
  char *to = y.as<char>();
  for (int64_t o = 0; o < outer && bytes > 0; ++o)
    for (int64_t i = 0; i < length; ++i)
      if (flags.as<const uint8_t>()[i] != 0) {
        movement::copyRun(to, x.as<const char>() + (o * size + i) * bytes, bytes);
        to += bytes;
      }
  if (!call.outDims)
    return;
  for (int i = 0; i < y.rank; ++i)
    call.outDims[0][i] = y.dims[i];
  call.outDims[0][hasAxis ? axis : 0] = kept;
}

constexpr Kernel kRows[] = {
    {"nonzero", "nonzero_any", Isa::Baseline, acceptsNonZero, prepareNonZero, runNonZero},
    {"compress", "compress_bytes", Isa::Baseline, acceptsCompress, prepareCompress, runCompress},
};

} // namespace

std::span<const Kernel> selectKernels() { return kRows; }

} // namespace dspark::index_ops
