// Reverse sequence and the triangles of matrices.
#include "kernels/common/byte_tiles.h"
#include "kernels/common/operand.h"
#include "kernels/movement/rows.h"
#include "kernels/movement/strided_copy.h"
#include <algorithm>

namespace dspark::movement {
namespace {

bool acceptsBytes(const KernelCall &call) { return dtypeBits(call.in[0].type) >= 8; }

void prepareRows(const KernelCall &call, KernelWork &work) {
  int64_t bytes = dtypeBytes(call.out[0].type, call.out[0].elements());
  work.tiles[0] = tilesForBytes(bytes);
  work.bytes = double(bytes) * 2;
}

// x is [time, batch, inner] or [batch, time, inner]; the first sequence_lens[b] steps of b change order.
void runReverse(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const TensorView &x = call.in[0];
  bool timeFirst = call.attrs.i("time_axis", 0) == 0;
  int64_t time = x.dims[timeFirst ? 0 : 1], rows = x.dims[0] * x.dims[1];
  int64_t bytes = x.elements(2, x.rank) * (dtypeBits(x.type) / 8);
  RowRange range(rows, work.tiles[0], part);
  for (int64_t row = range.begin; row < range.end; ++row) {
    int64_t first = row / x.dims[1], second = row % x.dims[1];
    int64_t batch = timeFirst ? second : first, step = timeFirst ? first : second;
    int64_t length = std::clamp<int64_t>(call.in[1].as<const int64_t>()[batch], 0, time);
    int64_t source = step < length ? length - 1 - step : step;
    int64_t from = timeFirst ? source * x.dims[1] + batch : batch * x.dims[1] + source;
    copyRun(call.out[0].as<char>() + row * bytes, x.as<const char>() + from * bytes, bytes);
  }
}

// Each row keeps columns from (upper) or up to (lower) its own number plus k.
void runTrilu(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const TensorView &x = call.in[0];
  int64_t columns = x.dims[x.rank - 1], height = x.dims[x.rank - 2];
  int64_t rows = x.elements(0, x.rank - 1), bytes = dtypeBits(x.type) / 8;
  bool upper = call.attrs.i("upper", 1) != 0;
  // Beyond the matrix k makes no further difference.
  int64_t k = call.has(1) ? std::clamp(call.in[1].as<const int64_t>()[0], -height - 1, columns + 1) : 0;
  RowRange range(rows, work.tiles[0], part);
  for (int64_t row = range.begin; row < range.end; ++row) {
    int64_t edge = std::clamp<int64_t>(row % height + k + (upper ? 0 : 1), 0, columns);
    int64_t keepBegin = upper ? edge : 0, keepEnd = upper ? columns : edge;
    char *to = call.out[0].as<char>() + row * columns * bytes;
    const char *from = x.as<const char>() + row * columns * bytes;
    __builtin_memset(to, 0, size_t(keepBegin * bytes));
    if (to != from && keepEnd > keepBegin)
      __builtin_memcpy(to + keepBegin * bytes, from + keepBegin * bytes,
                       size_t((keepEnd - keepBegin) * bytes));
    __builtin_memset(to + keepEnd * bytes, 0, size_t((columns - keepEnd) * bytes));
  }
}

constexpr Kernel kRows[] = {
    {"reverse_sequence", "reverse_sequence_bytes", Isa::Baseline, acceptsBytes, prepareRows, runReverse},
    {"trilu", "trilu_bytes", Isa::Baseline, acceptsBytes, prepareRows, runTrilu},
};

} // namespace

std::span<const Kernel> arrangeKernels() { return kRows; }

} // namespace dspark::movement
