// Running sums and products along an axis, in the order of the axis or against it. Each line is one chain, as
// the definition has it, and several lines run side by side; 16-bit floats run in f32 and round where they
// are written.
#include "kernels/common/byte_tiles.h"
#include "kernels/common/operand.h"
#include "kernels/reduce/rows.h"

namespace dspark::reduce_ops {
namespace {

bool accepts(const KernelCall &call) {
  return isPlainNumber(call.in[0].type) && isIndexType(call.in[1].type) && call.in[0].rank > 0;
}

void prepare(const KernelCall &call, KernelWork &work) {
  int64_t bytes = dtypeBytes(call.in[0].type, call.in[0].elements());
  work.tiles[0] = tilesForBytes(bytes);
  work.bytes = double(bytes) * 2;
}

template <typename T>
using Running = std::conditional_t<std::is_integral_v<T>, uint64_t, Accumulator<T>>; // integers wrap

template <typename T, bool kProduct> T advance(Running<T> &total, T x, bool isExclusive) {
  Running<T> before = total;
  total = kProduct ? before * Running<T>(x) : before + Running<T>(x);
  return T(isExclusive ? before : total);
}

constexpr int64_t kStripe = 128; // lines beside each other in memory that run together
constexpr int64_t kChains = 4;   // lines one behind the other: chains that hide an addition's latency

/// `count` neighbouring lines of `size` elements that are `step` apart.
template <typename T, bool kProduct>
void runColumns(const T *x, T *y, int64_t size, int64_t step, int64_t count, bool isExclusive) {
  Running<T> total[kStripe];
  std::fill_n(total, count, Running<T>(kProduct ? 1 : 0));
  for (int64_t i = 0; i < size; ++i)
    for (int64_t j = 0; j < count; ++j)
      y[i * step + j] = advance<T, kProduct>(total[j], x[i * step + j], isExclusive);
}

/// kCount contiguous lines, one behind the other, from their ends on where `step` is -1.
template <typename T, bool kProduct, int kCount>
void runRows(const T *x, T *y, int64_t size, int64_t step, bool isExclusive) {
  Running<T> total[kCount];
  std::fill_n(total, kCount, Running<T>(kProduct ? 1 : 0));
  for (int64_t i = 0; i < size; ++i)
#pragma clang loop unroll(full)
    for (int64_t j = 0; j < kCount; ++j) {
      int64_t at = i * step + j * size;
      y[at] = advance<T, kProduct>(total[j], x[at], isExclusive);
    }
}

template <typename T, bool kProduct>
void runLines(const T *x, T *y, int64_t size, int64_t step, int64_t count, bool isExclusive) {
  if (step != 1 && step != -1)
    return runColumns<T, kProduct>(x, y, size, step, count, isExclusive);
  if (count == kChains)
    return runRows<T, kProduct, kChains>(x, y, size, step, isExclusive);
  for (int64_t j = 0; j < count; ++j)
    runRows<T, kProduct, 1>(x + j * size, y + j * size, size, step, isExclusive);
}

void run(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const TensorView &x = call.in[0];
  int64_t axis = intAt(call.in[1], 0);
  axis = std::clamp<int64_t>(axis < 0 ? axis + x.rank : axis, 0, x.rank - 1);
  int64_t size = x.dims[axis], inner = x.elements(int(axis) + 1, x.rank);
  if (x.elements() == 0)
    return;
  bool isProduct = call.attrs.s("kind", "sum") == "prod", isExclusive = call.attrs.i("exclusive", 0) != 0;
  bool isReverse = call.attrs.i("reverse", 0) != 0;
  RowRange lines(x.elements() / size, work.tiles[0], part);
  dispatchNumber(x.type, [&]<typename T>() {
    for (int64_t line = lines.begin, count; line < lines.end; line += count) {
      count = std::min(lines.end - line, inner == 1 ? kChains : std::min(kStripe, inner - line % inner));
      int64_t first = line / inner * size * inner + line % inner + (isReverse ? (size - 1) * inner : 0);
      auto loop = isProduct ? runLines<T, true> : runLines<T, false>;
      loop(x.as<const T>() + first, call.out[0].as<T>() + first, size, isReverse ? -inner : inner, count,
           isExclusive);
    }
  });
}

constexpr Kernel kRows[] = {{"cumulative", "cumulative_any", Isa::Baseline, accepts, prepare, run}};

} // namespace

std::span<const Kernel> cumulativeRows() { return kRows; }

} // namespace dspark::reduce_ops
