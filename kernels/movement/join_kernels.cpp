// Concat and split. The joined tensor is a sequence of rows [outer], each made of one run per part; tiles are
// ranges of its bytes, so that one long row is shared between threads as well as many short ones.
#include "kernels/movement/rows.h"
#include "kernels/movement/strided_copy.h"
#include <algorithm>

namespace dspark::movement {
namespace {

struct JoinState {
  int64_t outer, inner; // products of the dims before and behind the axis
  int64_t rowBytes, tileBytes;
  int32_t axis, bits;
};

JoinState plan(const TensorView &whole, int64_t axis) {
  JoinState s;
  s.axis = int32_t(axis < 0 ? axis + whole.rank : axis);
  s.bits = dtypeBits(whole.type);
  s.outer = whole.elements(0, s.axis);
  s.inner = whole.elements(s.axis + 1, whole.rank);
  s.rowBytes = whole.dims[s.axis] * s.inner * (s.bits / 8);
  // Short rows are not cut.
  s.tileBytes = s.rowBytes >= kPieceBytes
                    ? kPieceBytes
                    : std::max<int64_t>(s.rowBytes, 1) *
                          std::max<int64_t>(1, kPieceBytes / std::max<int64_t>(s.rowBytes, 1));
  int64_t total = s.outer * s.rowBytes;
  s.tileBytes = std::max(s.tileBytes, total / (int64_t(1) << 30));
  return s;
}

uint32_t tilesOf(const JoinState &s) {
  return s.bits < 8 ? 1 : uint32_t((s.outer * s.rowBytes + s.tileBytes - 1) / s.tileBytes);
}

// Calls move(part, offset in the part, offset in the whole, bytes) for the bytes [begin, end) of the whole.
template <typename Move>
void forRange(const JoinState &s, std::span<const TensorView> parts, int64_t begin, int64_t end, Move move) {
  int64_t unit = s.inner * (s.bits / 8);
  while (begin < end) {
    int64_t outer = begin / s.rowBytes, at = begin % s.rowBytes, start = 0;
    int64_t rowEnd = std::min(end, (outer + 1) * s.rowBytes) - outer * s.rowBytes;
    for (size_t k = 0; k < parts.size() && start < rowEnd; ++k) {
      int64_t run = parts[k].dims[s.axis] * unit, stop = start + run;
      if (at < stop && run > 0) {
        int64_t bytes = std::min(stop, rowEnd) - at;
        move(k, outer * run + at - start, outer * s.rowBytes + at, bytes);
        at += bytes;
      }
      start = stop;
    }
    begin = outer * s.rowBytes + rowEnd;
  }
}

// Packed elements, part by part; `join` tells the direction.
void movePacked(const JoinState &s, const TensorView &whole, std::span<const TensorView> parts, bool join) {
  int64_t row = whole.dims[s.axis] * s.inner, offset = 0;
  for (const TensorView &part : parts) {
    int64_t run = part.dims[s.axis] * s.inner;
    StridedCopy copy;
    copy.add(s.outer, join ? run : row, join ? row : run);
    copy.add(run, 1, 1);
    if (join)
      copyPacked(copy, s.bits, part.data, 0, whole.data, offset);
    else
      copyPacked(copy, s.bits, whole.data, offset, part.data, 0);
    offset += run;
  }
}

bool accepts(const KernelCall &call) { return dtypeBits(call.in[0].type) > 0; }

void prepareConcat(const KernelCall &call, KernelWork &work) {
  JoinState &s = work.make<JoinState>() = plan(call.out[0], call.attrs.i("axis", 0));
  work.tiles[0] = tilesOf(s);
  work.bytes = double(s.outer) * double(s.rowBytes) * 2;
}

void runConcat(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const JoinState &s = work.get<JoinState>();
  if (s.bits < 8)
    return movePacked(s, call.out[0], call.in, true);
  char *y = call.out[0].as<char>();
  int64_t end = std::min(s.outer * s.rowBytes, part.end * s.tileBytes);
  forRange(s, call.in, part.begin * s.tileBytes, end,
           [&](size_t k, int64_t at, int64_t target, int64_t bytes) {
             copyRun(y + target, call.in[k].as<const char>() + at, bytes);
           });
}

void prepareSplit(const KernelCall &call, KernelWork &work) {
  JoinState &s = work.make<JoinState>() = plan(call.in[0], call.attrs.i("axis", 0));
  work.tiles[0] = tilesOf(s);
  work.bytes = double(s.outer) * double(s.rowBytes) * 2;
}

void runSplit(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const JoinState &s = work.get<JoinState>();
  if (s.bits < 8)
    return movePacked(s, call.in[0], call.out, false);
  const char *x = call.in[0].as<const char>();
  int64_t end = std::min(s.outer * s.rowBytes, part.end * s.tileBytes);
  forRange(s, call.out, part.begin * s.tileBytes, end,
           [&](size_t k, int64_t at, int64_t source, int64_t bytes) {
             copyRun(call.out[k].as<char>() + at, x + source, bytes);
           });
}

constexpr Kernel kRows[] = {
    {"concat", "concat_bytes", Isa::Baseline, accepts, prepareConcat, runConcat},
    {"split", "split_bytes", Isa::Baseline, accepts, prepareSplit, runSplit},
};

} // namespace

std::span<const Kernel> joinKernels() { return kRows; }

} // namespace dspark::movement
