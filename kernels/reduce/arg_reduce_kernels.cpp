// The position of the largest or smallest element along an axis. NaN beats every number, as numpy has it.
// Rows are folded first; the search for the value found stops at its place.
#include "kernels/common/byte_tiles.h"
#include "kernels/common/element.h"
#include "kernels/norm/rows_as_float.h"
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

constexpr int64_t kStripe = 128; // lines that are compared side by side

// Lines that are neighbours in x: `width` of them, `inner` elements between steps of the axis.
template <typename T> void compareStripe(const ArgState &s, const T *x, int64_t width, int64_t *y) {
  using Value = std::conditional_t<std::is_integral_v<T>, T, Accumulator<T>>;
  Value best[kStripe];
  for (int64_t j = 0; j < width; ++j) {
    best[j] = Value(x[j]);
    y[j] = 0;
  }
  for (int64_t i = 1; i < s.size; ++i)
    for (int64_t j = 0; j < width; ++j) {
      Value value = Value(x[i * s.inner + j]);
      bool isBetter = replaces<Value>(s, value, best[j]);
      best[j] = isBetter ? value : best[j];
      y[j] = isBetter ? i : y[j];
    }
}

// A contiguous line of integers: the best of each block is found without a branch, its place afterwards.
template <typename T> int64_t bestOfRow(const ArgState &s, const T *x) {
  T best = x[0];
  int64_t block = 0;
  for (int64_t i = 0; i < s.size; i += kFoldRow) {
    int64_t n = std::min(kFoldRow, s.size - i);
    T value = x[i];
    if (s.isMax)
      for (int64_t k = 1; k < n; ++k)
        value = std::max(value, x[i + k]);
    else
      for (int64_t k = 1; k < n; ++k)
        value = std::min(value, x[i + k]);
    if (replaces(s, value, best)) {
      best = value;
      block = i;
    }
  }
  int64_t n = std::min(kFoldRow, s.size - block);
  int64_t at = s.isLast ? n - 1 : 0, step = s.isLast ? -1 : 1;
  while (x[block + at] != best)
    at += step;
  return block + at;
}

void runAny(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const ArgState &s = work.get<ArgState>();
  RowRange lines(s.outer * s.inner, work.tiles[0], part);
  int64_t *y = call.out[0].as<int64_t>();
  dispatchNumber(call.in[0].type, [&]<typename T>() {
    for (int64_t line = lines.begin, width; line < lines.end; line += width) {
      int64_t place = line % s.inner;
      const T *x = call.in[0].as<const T>() + line / s.inner * s.size * s.inner + place;
      width = std::min({kStripe, s.inner - place, lines.end - line});
      if constexpr (std::is_integral_v<T>)
        if (s.inner == 1) {
          y[line] = bestOfRow(s, x);
          continue;
        }
      compareStripe(s, x, width, y + line);
    }
  });
}

bool acceptsAny(const KernelCall &call) { return isPlainNumber(call.in[0].type); }

bool acceptsFloatRows(const KernelCall &call) {
  const TensorView &x = call.in[0];
  int64_t axis = call.attrs.i("axis", 0);
  axis += axis < 0 ? x.rank : 0;
  return (x.type == DType::F32 || isHalf(x.type)) && x.elements(int(axis) + 1, x.rank) == 1;
}

void prepareRows(const KernelCall &call, KernelWork &work) {
  prepare(call, work);
  work.scratchPerThread = call.in[0].type == DType::F32 ? 0 : size_t(kFoldRow) * sizeof(float);
}

template <Isa isa, const FloatReduce &kSimd>
void runRows(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const ArgState &s = work.get<ArgState>();
  RowRange lines(s.outer, work.tiles[0], part);
  auto foldRow = kSimd.row[int(s.isMax ? Fold::Max : Fold::Min)];
  norm_ops::RowsAsFloat floats(isa);
  for (int64_t line = lines.begin; line < lines.end; ++line) {
    auto blockAt = [&](int64_t i) {
      return floats.load(call.in[0], line * s.size + i, std::min(kFoldRow, s.size - i),
                         reinterpret_cast<float *>(part.scratch));
    };
    // The block that holds the answer, then the place within it.
    float best = 0;
    int64_t block = 0;
    for (int64_t i = 0; i < s.size; i += kFoldRow) {
      float value = foldRow(blockAt(i), std::min(kFoldRow, s.size - i));
      if (i == 0 || replaces(s, value, best)) {
        best = value;
        block = i;
      }
    }
    const float *x = blockAt(block);
    int64_t n = std::min(kFoldRow, s.size - block), at = s.isLast ? n - 1 : 0, step = s.isLast ? -1 : 1;
    while (best == best ? x[at] != best : x[at] == x[at])
      at += step;
    call.out[0].as<int64_t>()[line] = block + at;
  }
}

constexpr Kernel kRows[] = {
    {"arg_reduce", "arg_reduce_rows_avx512", Isa::Avx512, acceptsFloatRows, prepareRows,
     runRows<Isa::Avx512, kFloatReduceAvx512>},
    {"arg_reduce", "arg_reduce_rows_avx2", Isa::Avx2, acceptsFloatRows, prepareRows,
     runRows<Isa::Avx2, kFloatReduceAvx2>},
    {"arg_reduce", "arg_reduce_rows", Isa::Baseline, acceptsFloatRows, prepareRows,
     runRows<Isa::Baseline, kFloatReduceBaseline>},
    {"arg_reduce", "arg_reduce_any", Isa::Baseline, acceptsAny, prepare, runAny},
};

} // namespace

std::span<const Kernel> argReduceRows() { return kRows; }

} // namespace dspark::reduce_ops
