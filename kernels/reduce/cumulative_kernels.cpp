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

constexpr int64_t kStripe = 128; // lines that run side by side, where they are neighbours
constexpr int64_t kChains = 8;   // else: as many as hide the latency of an addition

/// `count` lines of `size` elements that are `step` apart; `gap` is the distance between lines.
template <typename T, bool kProduct>
void runLines(const T *x, T *y, int64_t size, int64_t step, int64_t count, int64_t gap, bool isExclusive) {
  using Wide = std::conditional_t<std::is_integral_v<T>, uint64_t, Accumulator<T>>; // integers wrap
  Wide total[kStripe];
  std::fill_n(total, count, kProduct ? Wide(1) : Wide(0));
  auto line = [&](int64_t at, int64_t j) {
    Wide value = Wide(x[at]), before = total[j];
    total[j] = kProduct ? before * value : before + value;
    y[at] = T(isExclusive ? before : total[j]);
  };
  for (int64_t i = 0; i < size; ++i) {
    if (gap == 1)
      for (int64_t j = 0; j < count; ++j)
        line(i * step + j, j);
    else
      for (int64_t j = 0; j < count; ++j)
        line(i * step + j * gap, j);
  }
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
           inner == 1 ? size : 1, isExclusive);
    }
  });
}

constexpr Kernel kRows[] = {{"cumulative", "cumulative_any", Isa::Baseline, accepts, prepare, run}};

} // namespace

std::span<const Kernel> cumulativeRows() { return kRows; }

} // namespace dspark::reduce_ops
