// Running sums and products along an axis, in the order of the axis or against it. Each line is one chain, as
// the definition has it; 16-bit floats run in f32 and round where they are written.
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
    using Wide = std::conditional_t<std::is_integral_v<T>, uint64_t, Accumulator<T>>; // integers wrap
    for (int64_t line = lines.begin; line < lines.end; ++line) {
      int64_t first = line / inner * size * inner + line % inner + (isReverse ? (size - 1) * inner : 0);
      int64_t step = isReverse ? -inner : inner;
      Wide total = isProduct ? Wide(1) : Wide(0);
      for (int64_t i = 0; i < size; ++i) {
        int64_t at = first + i * step;
        Wide value = Wide(x.as<const T>()[at]), before = total;
        total = isProduct ? total * value : total + value;
        call.out[0].as<T>()[at] = T(isExclusive ? before : total);
      }
    }
  });
}

constexpr Kernel kRows[] = {{"cumulative", "cumulative_any", Isa::Baseline, accepts, prepare, run}};

} // namespace

std::span<const Kernel> cumulativeRows() { return kRows; }

} // namespace dspark::reduce_ops
