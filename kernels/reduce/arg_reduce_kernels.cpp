// The position of the largest or smallest element along an axis. NaN beats every number, as numpy has it. f32
// rows are folded with SIMD first; the search for the value found stops at its place.
#include "kernels/common/byte_tiles.h"
#include "kernels/common/element.h"
#include "kernels/reduce/float_reduce.h"
#include "kernels/reduce/rows.h"

namespace dspark::reduce_ops {
namespace {

struct ArgState {
  int64_t outer, size, inner;
  bool isMax, isLast; // isLast: of equal elements the one with the highest index
};

void prepare(const KernelCall &call, KernelWork &work) {
  const TensorView &x = call.in[0];
  int64_t axis = call.attrs.i("axis", 0);
  axis += axis < 0 ? x.rank : 0;
  ArgState &s = work.make<ArgState>();
  s = {x.elements(0, int(axis)), x.dims[axis], x.elements(int(axis) + 1, x.rank),
       call.attrs.s("kind", "") == "argmax", call.attrs.i("select_last_index", 0) != 0};
  int64_t bytes = dtypeBytes(x.type, x.elements());
  work.tiles[0] = uint32_t(std::clamp<int64_t>(s.outer * s.inner, 1, tilesForBytes(bytes)));
  work.bytes = double(bytes);
}

// Whether a later element x takes the place of `best`.
template <typename T> bool replaces(const ArgState &s, T x, T best) {
  if (best != best)
    return s.isLast && x != x;
  return x != x || (s.isMax ? x > best : x < best) || (s.isLast && x == best);
}

void runAny(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const ArgState &s = work.get<ArgState>();
  RowRange lines(s.outer * s.inner, work.tiles[0], part);
  dispatchNumber(call.in[0].type, [&]<typename T>() {
    using Value = std::conditional_t<std::is_integral_v<T>, T, Accumulator<T>>;
    for (int64_t line = lines.begin; line < lines.end; ++line) {
      const T *x = call.in[0].as<const T>() + line / s.inner * s.size * s.inner + line % s.inner;
      Value best = Value(x[0]);
      int64_t at = 0;
      for (int64_t i = 1; i < s.size; ++i)
        if (replaces<Value>(s, Value(x[i * s.inner]), best)) {
          best = Value(x[i * s.inner]);
          at = i;
        }
      call.out[0].as<int64_t>()[line] = at;
    }
  });
}

bool acceptsAny(const KernelCall &call) { return isPlainNumber(call.in[0].type); }

bool acceptsF32Rows(const KernelCall &call) {
  const TensorView &x = call.in[0];
  int64_t axis = call.attrs.i("axis", 0);
  axis += axis < 0 ? x.rank : 0;
  return x.type == DType::F32 && x.elements(int(axis) + 1, x.rank) == 1;
}

template <const FloatReduce &kSimd>
void runF32(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const ArgState &s = work.get<ArgState>();
  RowRange lines(s.outer, work.tiles[0], part);
  auto foldRow = kSimd.row[int(s.isMax ? Fold::Max : Fold::Min)];
  for (int64_t line = lines.begin; line < lines.end; ++line) {
    const float *x = call.in[0].as<const float>() + line * s.size;
    // The block that holds the answer, then the place within it.
    float best = 0;
    int64_t block = 0;
    for (int64_t i = 0; i < s.size; i += kFoldRow) {
      float value = foldRow(x + i, std::min(kFoldRow, s.size - i));
      if (i == 0 || replaces(s, value, best)) {
        best = value;
        block = i;
      }
    }
    int64_t n = std::min(kFoldRow, s.size - block), at = s.isLast ? n - 1 : 0, step = s.isLast ? -1 : 1;
    while (best == best ? x[block + at] != best : x[block + at] == x[block + at])
      at += step;
    call.out[0].as<int64_t>()[line] = block + at;
  }
}

constexpr Kernel kRows[] = {
    {"arg_reduce", "arg_reduce_f32_avx512", Isa::Avx512, acceptsF32Rows, prepare, runF32<kFloatReduceAvx512>},
    {"arg_reduce", "arg_reduce_f32_avx2", Isa::Avx2, acceptsF32Rows, prepare, runF32<kFloatReduceAvx2>},
    {"arg_reduce", "arg_reduce_f32", Isa::Baseline, acceptsF32Rows, prepare, runF32<kFloatReduceBaseline>},
    {"arg_reduce", "arg_reduce_any", Isa::Baseline, acceptsAny, prepare, runAny},
};

} // namespace

std::span<const Kernel> argReduceRows() { return kRows; }

} // namespace dspark::reduce_ops
