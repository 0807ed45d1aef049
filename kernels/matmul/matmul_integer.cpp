#include "kernels/matmul/matmul_integer.h"
#include "kernels/common/element.h"
#include "kernels/matmul/igemm.h"
#include "kernels/matmul/matmul_plan.h"
#include <algorithm>

namespace dspark {
namespace {

// Operand numbers; kAbsent where an operator lacks one.
constexpr size_t kAbsent = 99;
struct Operands {
  size_t a, aScale, aZero, b, bScale, bZero, yScale, yZero;
};
constexpr Operands kInteger = {0, kAbsent, 2, 1, kAbsent, 3, kAbsent, kAbsent},
                   kQlinear = {0, 1, 2, 3, 4, 5, 6, 7};

struct State {
  MatmulPlan plan;
  bool isQlinear;
  int64_t pairs;
  int64_t panelAt, sumsAt; // bytes into scratch; the rows of A come first
};
static_assert(sizeof(State) <= 512);

size_t roundUp(size_t bytes) { return (bytes + 63) / 64 * 64; }

void prepare(const KernelCall &call, KernelWork &work, bool isQlinear) {
  const Operands &at = isQlinear ? kQlinear : kInteger;
  State &state = work.make<State>();
  state.isQlinear = isQlinear;
  // panel16k4 pads K as well, which the plan's batch stride would not know; it is only made of single
  // matrices.
  state.plan.read(call.in[at.a], call.in[at.b], call.out[0], false, false,
                  !call.attrs.s("packed", "").empty());
  state.pairs = (state.plan.k + 1) / 2;
  work.tiles[0] = state.plan.cut(kIntegerRows);
  size_t rows = size_t(state.plan.m / state.plan.rowTiles + 1);
  state.panelAt = int64_t(roundUp(rows * size_t(state.pairs) * 4));
  state.sumsAt = state.panelAt + int64_t(roundUp(size_t(state.pairs) * 64));
  work.scratchPerThread = size_t(state.sumsAt) + rows * 64;
  const MatmulPlan &plan = state.plan;
  work.flops = 2.0 * double(plan.m) * double(plan.n) * double(plan.k) * double(plan.batches);
  work.bytes = double(call.in[at.a].elements()) + double(call.in[at.b].elements()) +
               double(call.out[0].elements()) * (isQlinear ? 1 : 4);
}

// Entry i of a zero point or scale that holds one value for all, one per row or column, or one per row or
// column of every batch.
int64_t entry(const TensorView &t, int64_t i) { return t.elements() == 1 ? 0 : i % t.elements(); }
int16_t zeroAt(const TensorView &t, int64_t i) {
  if (!t.present() || t.elements() == 0)
    return 0;
  return t.type == DType::I8 ? t.as<int8_t>()[entry(t, i)] : t.as<uint8_t>()[entry(t, i)];
}
float scaleAt(const TensorView &t, int64_t i) {
  float value = 1;
  if (t.elements() > 0)
    dispatchFloat(t.type, [&]<typename T>() { value = float(t.as<T>()[entry(t, i)]); });
  return value;
}

const int8_t *bytesOf(const TensorView &t) { return t.as<int8_t>(); }

void storePanel(const KernelCall &call, const State &state, const MatmulRange &range, int64_t aRow,
                int64_t bColumn, int64_t column, int64_t columns, const int32_t *sums) {
  for (int64_t r = 0; r < range.rows; ++r) {
    int64_t at = (range.batch * state.plan.m + range.row + r) * state.plan.n + column;
    if (!state.isQlinear) {
      std::copy_n(sums + r * 16, columns, call.out[0].as<int32_t>() + at);
      continue;
    }
    float rowScale = scaleAt(call.in[kQlinear.aScale], aRow + r) / scaleAt(call.in[kQlinear.yScale], 0);
    for (int64_t j = 0; j < columns; ++j) {
      Requantize requantize = {rowScale * scaleAt(call.in[kQlinear.bScale], bColumn + j),
                               zeroAt(call.in[kQlinear.yZero], 0), call.out[0].type == DType::I8};
      call.out[0].as<uint8_t>()[at + j] = requantize(sums[r * 16 + j]);
    }
  }
}

void runTile(const KernelCall &call, const State &state, const IgemmOps &ops, const MatmulRange &range,
             std::byte *scratch) {
  if (range.rows <= 0 || range.columns <= 0)
    return;
  const MatmulPlan &plan = state.plan;
  const Operands &at = state.isQlinear ? kQlinear : kInteger;
  int64_t aOffset, bOffset;
  plan.offsets(range.batch, aOffset, bOffset);
  const TensorView &a = call.in[at.a], &b = call.in[at.b], &aZero = call.input(at.aZero),
                   &bZero = call.input(at.bZero);
  int64_t depth = std::max<int64_t>(plan.k, 1), width = std::max<int64_t>(plan.n, 1);
  int64_t aRow = aOffset / depth + range.row, bFirst = bOffset / (depth * width) * plan.n;

  int16_t *rows = reinterpret_cast<int16_t *>(scratch);
  for (int64_t r = 0; r < range.rows; ++r)
    ops.row(past(bytesOf(a), aOffset + (range.row + r) * plan.k), a.type == DType::I8, plan.k, 1,
            zeroAt(aZero, aRow + r), rows + r * state.pairs * 2);
  int16_t *panel = reinterpret_cast<int16_t *>(scratch + state.panelAt);
  int32_t *sums = reinterpret_cast<int32_t *>(scratch + state.sumsAt);
  for (int64_t column = range.column; column < range.column + range.columns; column += 16) {
    int64_t columns = std::min<int64_t>(16, range.column + range.columns - column);
    int16_t zero[16] = {};
    for (int64_t j = 0; j < columns; ++j)
      zero[j] = zeroAt(bZero, bFirst + column + j);
    if (plan.isPacked)
      ops.unpack(past(bytesOf(b), column * ((plan.k + 3) / 4 * 4)), b.type == DType::I8, plan.k, zero, panel);
    else
      ops.pack(past(bytesOf(b), bOffset + column), b.type == DType::I8, plan.k, columns, plan.bTerm,
               plan.bColumn, zero, panel);
    ops.tile({rows, range.rows, state.pairs, panel, sums});
    storePanel(call, state, range, aRow, bFirst + column, column, columns, sums);
  }
}

} // namespace

void prepareMatmulInteger(const KernelCall &call, KernelWork &work) { prepare(call, work, false); }
void prepareQlinearMatmul(const KernelCall &call, KernelWork &work) { prepare(call, work, true); }

template <Isa isa>
void runMatmulInteger(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const State &state = work.get<State>();
  for (uint32_t tile = part.begin; tile < part.end; ++tile)
    runTile(call, state, igemmOps(isa), matmulTile(state.plan, tile), part.scratch);
}
template void runMatmulInteger<Isa::Baseline>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runMatmulInteger<Isa::Avx2>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runMatmulInteger<Isa::Avx512>(const KernelCall &, const KernelWork &, const KernelPart &);

} // namespace dspark
