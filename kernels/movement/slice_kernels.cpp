// Slice: a strided copy whose strides follow from the contents of operands, so it is planned in run(). Tiles
// are planned on the dims alone.
#include "kernels/common/byte_tiles.h"
#include "kernels/common/operand.h"
#include "kernels/movement/movement.h"
#include "kernels/movement/rows.h"
#include "kernels/movement/strided_copy.h"
#include <algorithm>

namespace dspark::movement {
namespace {

// The copy and the source offset of its first element, in elements.
StridedCopy planSlice(const KernelCall &call, int64_t &offset) {
  const TensorView &x = call.in[0], &y = call.out[0], &starts = call.in[1];
  SliceRange ranges[kMaxRank];
  for (int i = 0; i < x.rank; ++i)
    ranges[i] = {0, 1, x.dims[i]};
  for (int64_t k = 0; k < starts.elements(); ++k) {
    int64_t axis = call.has(3) ? intAt(call.in[3], k) : k;
    axis = std::clamp<int64_t>(axis < 0 ? axis + x.rank : axis, 0, x.rank - 1);
    int64_t step = call.has(4) ? intAt(call.in[4], k) : 1;
    ranges[axis] = sliceRange(intAt(starts, k), intAt(call.in[2], k), x.dims[axis], step == 0 ? 1 : step);
  }
  int64_t from[kMaxRank], stride = 1;
  for (int i = x.rank - 1; i >= 0; --i) {
    from[i] = stride;
    stride *= x.dims[i];
  }
  StridedCopy copy;
  int64_t to = y.elements();
  offset = 0;
  for (int i = 0; i < y.rank; ++i) {
    to = y.dims[i] > 0 ? to / y.dims[i] : 0;
    offset += ranges[i].start * from[i];
    copy.add(std::min(y.dims[i], ranges[i].length), from[i] * ranges[i].step, to);
  }
  return copy;
}

bool accepts(const KernelCall &call) {
  if (dtypeBits(call.in[0].type) == 0)
    return false;
  for (size_t i = 1; i < call.in.size(); ++i)
    if (call.has(i) && !isIndexType(call.in[i].type))
      return false;
  return true;
}

void prepare(const KernelCall &call, KernelWork &work) {
  int64_t bytes = dtypeBytes(call.out[0].type, call.out[0].elements());
  work.bytes = double(bytes) * 2;
  bool isPacked = dtypeBits(call.in[0].type) < 8;
  work.tiles[0] = isPacked ? 1 : tilesForBytes(bytes);
}

void run(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  int64_t offset;
  StridedCopy copy = planSlice(call, offset);
  int bits = dtypeBits(call.in[0].type);
  if (bits < 8)
    return copyPacked(copy, bits, call.in[0].data, offset, call.out[0].data, 0);
  // The copy's own tiles are shared out over the tiles that the dims promised.
  CopyLoop loop(copy, bits / 8);
  uint64_t own = loop.tiles(), tiles = work.tiles[0];
  loop.run(call.in[0].as<const char>() + offset * (bits / 8), call.out[0].data,
           uint32_t(own * part.begin / tiles), uint32_t(own * part.end / tiles));
}

constexpr Kernel kRows[] = {{"slice", "slice_bytes", Isa::Baseline, accepts, prepare, run}};

} // namespace

std::span<const Kernel> sliceKernels() { return kRows; }

} // namespace dspark::movement
