// Concat and split. The joined tensor is a sequence of rows [outer], each made of one run per part; tiles are
// ranges of its bytes, so that one long row is shared between threads as well as many short ones. Short rows
// are moved part by part, which makes the runs of one size a tight loop.
#include "kernels/common/byte_tiles.h"
#include "kernels/movement/rows.h"
#include "kernels/movement/strided_copy.h"
#include <algorithm>

namespace dspark::movement {
namespace {

struct JoinState {
  int64_t outer, inner; // products of the dims before and behind the axis
  int32_t axis, bits;
  ByteTiles tiles; // of the joined tensor
};

JoinState &plan(const KernelCall &call, const TensorView &whole, KernelWork &work) {
  JoinState &s = work.make<JoinState>();
  int64_t axis = call.attrs.i("axis", 0);
  s.axis = int32_t(axis < 0 ? axis + whole.rank : axis);
  s.bits = dtypeBits(whole.type);
  s.outer = whole.elements(0, s.axis);
  s.inner = whole.elements(s.axis + 1, whole.rank);
  s.tiles = ByteTiles(s.outer, whole.dims[s.axis] * s.inner * (s.bits / 8));
  work.tiles[0] = s.bits < 8 ? 1 : s.tiles.tiles();
  work.bytes = double(s.tiles.total) * 2;
  return s;
}

// Calls move(part, offset in the part, offset in the whole, bytes) for the bytes of these tiles.
template <typename Move>
void forPieces(const JoinState &s, std::span<const TensorView> parts, const KernelPart &tiles, Move move) {
  int64_t unit = s.inner * (s.bits / 8);
  s.tiles.forRows(tiles, [&](int64_t row, int64_t at, int64_t bytes) {
    int64_t start = 0, end = at + bytes;
    for (size_t k = 0; k < parts.size() && start < end; ++k) {
      int64_t run = parts[k].dims[s.axis] * unit, stop = start + run;
      if (at < stop) {
        int64_t piece = std::min(stop, end) - at;
        move(k, row * run + at - start, row * s.tiles.rowBytes + at, piece);
        at += piece;
      }
      start = stop;
    }
  });
}

// Calls move(part, offset in the part, offset in the whole, runs, bytes of a run, bytes of a row) for tiles
// of whole rows.
template <typename Move>
void forRuns(const JoinState &s, std::span<const TensorView> parts, const KernelPart &tiles, Move move) {
  int64_t unit = s.inner * (s.bits / 8), rowBytes = s.tiles.rowBytes, start = 0;
  int64_t first = s.tiles.begin(tiles) / rowBytes, rows = s.tiles.end(tiles) / rowBytes - first;
  for (size_t k = 0; k < parts.size(); ++k) {
    int64_t run = parts[k].dims[s.axis] * unit;
    if (run > 0)
      move(k, first * run, first * rowBytes + start, rows, run, rowBytes);
    start += run;
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

void prepareConcat(const KernelCall &call, KernelWork &work) { plan(call, call.out[0], work); }

void runConcat(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const JoinState &s = work.get<JoinState>();
  if (s.bits < 8)
    return movePacked(s, call.out[0], call.in, true);
  char *y = call.out[0].as<char>();
  if (s.tiles.rowBytes < kTileBytes)
    return forRuns(s, call.in, part,
                   [&](size_t k, int64_t at, int64_t to, int64_t rows, int64_t run, int64_t row) {
                     copyRuns(call.in[k].as<const char>() + at, y + to, rows, run, row, run);
                   });
  forPieces(s, call.in, part, [&](size_t k, int64_t at, int64_t target, int64_t bytes) {
    copyRun(y + target, call.in[k].as<const char>() + at, bytes);
  });
}

void prepareSplit(const KernelCall &call, KernelWork &work) { plan(call, call.in[0], work); }

void runSplit(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const JoinState &s = work.get<JoinState>();
  if (s.bits < 8)
    return movePacked(s, call.in[0], call.out, false);
  const char *x = call.in[0].as<const char>();
  if (s.tiles.rowBytes < kTileBytes)
    return forRuns(s, call.out, part,
                   [&](size_t k, int64_t at, int64_t from, int64_t rows, int64_t run, int64_t row) {
                     copyRuns(x + from, call.out[k].as<char>() + at, rows, row, run, run);
                   });
  forPieces(s, call.out, part, [&](size_t k, int64_t at, int64_t source, int64_t bytes) {
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
