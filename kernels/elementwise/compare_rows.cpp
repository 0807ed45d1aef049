// Kernels of "compare" and "select". Their booleans are bytes, 0 or 1.
#include "kernels/common/broadcast.h"
#include "kernels/elementwise/float_loops.h"
#include "kernels/elementwise/rows.h"
#include "kernels/elementwise/scalar.h"
#include <array>

namespace dspark {
namespace {

// --- compare ---

struct CompareState {
  BroadcastLoops<2> loops;
  CompareKind kind;
  const CompareLoop *forms;
  int outer; // the operand of which one element serves a row while the rows of the other repeat; -1 if none
};

// [N,1] against [M], as in one-hot: rows too short to be worth a call or a gather each.
int outerOperand(const BroadcastLoops<2> &loops) {
  if (loops.rank != 2 || loops.dims[1] >= kLongRow)
    return -1;
  for (int k : {0, 1})
    if (loops.strides[k][1] == 0 && loops.strides[1 - k][0] == 0 && loops.strides[1 - k][1] == 1)
      return k;
  return -1;
}

template <Isa isa> void prepareCompare(const KernelCall &call, KernelWork &work) {
  auto &state = work.make<CompareState>();
  state.kind = compareKind(call.attrs.s("kind", ""));
  state.forms = floatLoops(isa).compare[int(state.kind)];
  collapseLoops(call.out[0], call.in, state.loops);
  state.outer = outerOperand(state.loops);
  prepareElementwise(call, work, 1);
}

bool isF32(const KernelCall &call) { return call.in[0].type == DType::F32; }
bool isNumber(const KernelCall &call) { return isPlainNumber(call.in[0].type); }
void runCompareF32(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const auto &state = work.get<CompareState>();
  uint8_t *y = call.out[0].as<uint8_t>();
  forBlocks(state.loops, call.in, part, INT64_MAX, [&](const BlockOperand *x, int64_t i, int64_t n) {
    auto *a = static_cast<const float *>(x[0].data), *b = static_cast<const float *>(x[1].data);
    if (x[0].isScalar && x[1].isScalar) {
      uint8_t value;
      state.forms[kBothBlocks](a, b, &value, 1);
      std::fill_n(y + i, n, value);
      return;
    }
    state.forms[x[0].isScalar ? kScalarA : x[1].isScalar ? kScalarB : kBothBlocks](a, b, y + i, n);
  });
}

/// 0 where one element serves the block, else the operand's step.
template <typename T, CompareKind kind, int aStep, int bStep>
void compareLoop(const T *a, const T *b, uint8_t *y, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    y[i] = compareValues<T>(kind, a[i * aStep], b[i * bStep]);
}
template <typename T> using CompareBlock = void (*)(const T *, const T *, uint8_t *, int64_t);
/// Indexed by kind, then by the bits of (a, b) being one element.
template <typename T>
constexpr CompareBlock<T> kCompareLoops[][4] = {
#define DSPARK_COMPARE(name)                                                                                 \
  {compareLoop<T, CompareKind::k_##name, 1, 1>, compareLoop<T, CompareKind::k_##name, 1, 0>,                 \
   compareLoop<T, CompareKind::k_##name, 0, 1>, compareLoop<T, CompareKind::k_##name, 0, 0>},
#include "kernels/elementwise/kinds.def"
};

// Rows of n results, of which [begin, end) are this part's.
template <typename T>
void compareOuter(const CompareState &state, const KernelCall &call, uint8_t *y, int64_t begin, int64_t end) {
  bool isA = state.outer == 0;
  CompareBlock<T> loop = kCompareLoops<T>[int(state.kind)][isA ? 2 : 1];
  const T *one = call.in[size_t(state.outer)].as<const T>(), *many = call.in[isA ? 1 : 0].as<const T>();
  int64_t n = state.loops.dims[1], stride = state.loops.strides[state.outer][0];
  for (int64_t i = begin; i < end;) {
    int64_t row = i / n, column = i % n, count = std::min(n - column, end - i);
    loop(isA ? one + row * stride : many + column, isA ? many + column : one + row * stride, y + i, count);
    i += count;
  }
}

void runCompare(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const auto &state = work.get<CompareState>();
  uint8_t *y = call.out[0].as<uint8_t>();
  dispatchNumber(call.in[0].type, [&]<typename T>() {
    if (state.outer >= 0)
      return compareOuter<T>(state, call, y, int64_t(part.begin) * kElementwiseTile,
                             std::min(state.loops.total, int64_t(part.end) * kElementwiseTile));
    forBlocks(state.loops, call.in, part, INT64_MAX, [&](const BlockOperand *x, int64_t i, int64_t n) {
      kCompareLoops<T>[int(state.kind)][x[0].isScalar * 2 + x[1].isScalar](
          static_cast<const T *>(x[0].data), static_cast<const T *>(x[1].data), y + i, n);
    });
  });
}

// --- select: moves elements, so only their width counts ---

struct SelectState {
  BroadcastLoops<3> loops;
};

struct Bytes16 {
  uint64_t low, high;
};

using SelectLoop3 = void (*)(const BlockOperand *x, void *y, int64_t n);
template <typename T, bool cScalar, bool aScalar, bool bScalar>
void selectLoop(const BlockOperand *x, void *y, int64_t n) {
  auto *c = static_cast<const uint8_t *>(x[0].data);
  auto *a = static_cast<const T *>(x[1].data), *b = static_cast<const T *>(x[2].data);
  T *out = static_cast<T *>(y);
  for (int64_t i = 0; i < n; ++i) {
    T left = a[aScalar ? 0 : i], right = b[bScalar ? 0 : i];
    out[i] = c[cScalar ? 0 : i] ? left : right;
  }
}
/// Indexed by the bits of (condition, a, b) being scalars.
template <typename T>
constexpr SelectLoop3 kSelectLoops[8] = {
    selectLoop<T, false, false, false>, selectLoop<T, false, false, true>, selectLoop<T, false, true, false>,
    selectLoop<T, false, true, true>,   selectLoop<T, true, false, false>, selectLoop<T, true, false, true>,
    selectLoop<T, true, true, false>,   selectLoop<T, true, true, true>};

void prepareSelect(const KernelCall &call, KernelWork &work) {
  collapseLoops(call.out[0], call.in, work.make<SelectState>().loops);
  prepareElementwise(call, work, 0);
}

template <typename T>
void runSelectAs(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  T *y = call.out[0].as<T>();
  const BroadcastLoops<3> &loops = work.get<SelectState>().loops;
  forBlocks(loops, call.in, part, INT64_MAX, [&](const BlockOperand *x, int64_t i, int64_t n) {
    kSelectLoops<T>[x[0].isScalar * 4 + x[1].isScalar * 2 + x[2].isScalar](x, y + i, n);
  });
}
void runSelect(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  switch (dtypeBits(call.out[0].type)) {
  case 8:
    return runSelectAs<uint8_t>(call, work, part);
  case 16:
    return runSelectAs<uint16_t>(call, work, part);
  case 32:
    return runSelectAs<uint32_t>(call, work, part);
  case 64:
    return runSelectAs<uint64_t>(call, work, part);
  default:
    return runSelectAs<Bytes16>(call, work, part);
  }
}

} // namespace

std::span<const Kernel> compareRows() {
  static const Kernel rows[] = {
      {"compare", "compare_f32_avx512", Isa::Avx512, isF32, prepareCompare<Isa::Avx512>, runCompareF32},
      {"compare", "compare_f32_avx2", Isa::Avx2, isF32, prepareCompare<Isa::Avx2>, runCompareF32},
      {"compare", "compare_f32", Isa::Baseline, isF32, prepareCompare<Isa::Baseline>, runCompareF32},
      {"compare", "compare_reference", Isa::Baseline, isNumber, prepareCompare<Isa::Baseline>, runCompare},
  };
  return rows;
}

std::span<const Kernel> selectRows() {
  static const Kernel rows[] = {
      {"select", "select_any", Isa::Baseline, nullptr, prepareSelect, runSelect},
  };
  return rows;
}

} // namespace dspark
