// Integer matmuls: the rows of a tile are brought to the form that igemm.h multiplies, then panel by panel of
// B is multiplied and its sums are stored. B is packed in the plan, or by each tile where it is no constant.
#include "kernels/matmul/matmul_integer.h"
#include "kernels/common/shares.h"
#include "kernels/common/tiles.h"
#include "kernels/matmul/igemm.h"
#include "kernels/matmul/integer_result.h"
#include "kernels/matmul/matmul_plan.h"
#include <algorithm>

namespace dspark {
namespace {

struct State {
  MatmulPlan plan;
  bool isQlinear;
  // Offsets into a thread's scratch; the rows of A come first.
  int64_t panels, wide, sums, rowSums, zeros;
};
static_assert(sizeof(State) <= 512);

void prepare(const KernelCall &call, KernelWork &work, bool isQlinear) {
  const IntegerOperands &at = isQlinear ? kQlinearOperands : kIntegerOperands;
  State &state = work.make<State>();
  MatmulPlan &plan = state.plan;
  state.isQlinear = isQlinear;
  // panel16k4 pads K as well, which the plan's batch stride would not know; it is only made of single
  // matrices.
  plan.read(call.in[at.a], call.in[at.b], call.out[0], false, call.attrs.i("trans_b", 0) != 0,
            !call.attrs.s("packed", "").empty());
  work.tiles[0] = plan.cut(integerTileRows(plan.k));
  int64_t rows = plan.m / plan.grid.rows + 1, used = 0;
  auto take = [&](int64_t bytes) { return takeBytes(used, bytes); };
  take(rows * ((plan.k + 3) / 4 * 4) * 2);
  state.panels = take(plan.isPacked ? 0 : kIntegerPanels * packedPanelBytes(plan.k));
  state.wide = take(kIntegerScratch);
  state.sums = take(kIntegerPanels * rows * kIntegerColumns * 4);
  state.rowSums = take(rows * 4);
  state.zeros = take(rows * 2);
  work.scratchPerThread = size_t(used);
  work.flops = 2.0 * double(plan.m) * double(plan.n) * double(plan.k) * double(plan.batches);
  work.bytes = double(call.in[at.a].elements()) + double(call.in[at.b].elements()) +
               double(call.out[0].elements()) * dtypeBits(call.out[0].type) / 8;
}

const std::byte *bytesOf(const TensorView &t) { return t.as<std::byte>(); }

// One tile's operands and scratch.
struct Tile {
  const KernelCall &call;
  const State &state;
  const IgemmOps &ops;
  MatmulRange range;
  std::byte *scratch;

  const MatmulPlan &plan = state.plan;
  const IntegerOperands &at = state.isQlinear ? kQlinearOperands : kIntegerOperands;
  const TensorView &a = call.in[at.a], &b = call.in[at.b], &aZero = call.input(at.aZero),
                   &bZero = call.input(at.bZero);
  PanelZeros bZeros = PanelZeros(b, bZero);
  int16_t *zeros = reinterpret_cast<int16_t *>(scratch + state.zeros);
  int32_t *sums = reinterpret_cast<int32_t *>(scratch + state.sums);
  int32_t *rowSums = reinterpret_cast<int32_t *>(scratch + state.rowSums);
  const std::byte *rows = scratch;

  void makeRows(int64_t aOffset, int64_t aRow) {
    bool isSigned = a.type == DType::I8;
    int64_t step = rowBytes(ops, plan.k);
    bool isInPlace = takesRowsAsTheyAre(ops, isSigned) && plan.aTerm == 1 && plan.aRow == step;
    if (isInPlace)
      rows = past(bytesOf(a), aOffset + range.row * plan.aRow);
    for (int64_t r = 0; r < range.rows; ++r) {
      int16_t zero = zeroAt(aZero, aRow + r);
      if (!isInPlace)
        ops.row(past(bytesOf(a), aOffset + (range.row + r) * plan.aRow), isSigned, plan.k, plan.aTerm, zero,
                scratch + r * step);
      zeros[r] = rowZero(ops, isSigned, zero);
    }
  }

  const std::byte *panelsAt(int64_t bOffset, int64_t column, int64_t columns) {
    if (plan.isPacked)
      return past(bytesOf(b), column / kIntegerColumns * packedPanelBytes(plan.k));
    std::byte *panels = scratch + state.panels;
    for (int64_t done = 0; done < columns; done += kIntegerColumns)
      ops.pack(past(bytesOf(b), bOffset + (column + done) * plan.bColumn), b.type == DType::I8, plan.k,
               std::min(kIntegerColumns, columns - done), plan.bTerm, plan.bColumn,
               panels + done / kIntegerColumns * packedPanelBytes(plan.k));
    return panels;
  }

  void run() {
    if (range.rows <= 0 || range.columns <= 0)
      return;
    int64_t aOffset, bOffset;
    plan.offsets(range.batch, aOffset, bOffset);
    int64_t depth = std::max<int64_t>(plan.k, 1), width = std::max<int64_t>(plan.n, 1);
    int64_t aRow = aOffset / depth + range.row, bFirst = bOffset / (depth * width) * plan.n;
    makeRows(aOffset, aRow);
    IntegerResult result(call, at);
    ResultColumns parameters[kIntegerPanels];
    SumsResult results[kIntegerPanels];
    bool hasRowSums = false;
    for (int64_t column = range.column, columns; column < range.column + range.columns; column += columns) {
      columns = std::min(kIntegerPanels * kIntegerColumns, range.column + range.columns - column);
      int64_t panels = (columns + kIntegerColumns - 1) / kIntegerColumns;
      bool isFused = result.isUniform();
      int16_t zero[kIntegerPanels][kIntegerColumns];
      for (int64_t p = 0; p < panels; ++p) {
        int64_t from = column + p * kIntegerColumns,
                count = std::min(kIntegerColumns, range.column + range.columns - from);
        isFused &= !bZeros.read(bFirst + from, count, zero[p]);
        result.read(bFirst + from, count, parameters[p]);
        results[p] = result.result(parameters[p], range.rows, placeOf(result, from));
      }
      ops.tile({rows, zeros, range.rows, plan.k, panelsAt(bOffset, column, columns), panels,
                scratch + state.wide, sums, isFused ? results : nullptr});
      for (int64_t p = 0; p < panels && !isFused; ++p)
        finish(result, parameters[p], p, column + p * kIntegerColumns, aRow, zero[p], hasRowSums);
    }
  }

  ResultPlace placeOf(const IntegerResult &result, int64_t column) const {
    return result.at((range.batch * plan.m + range.row) * plan.n + column, plan.n);
  }

  // What the product cannot do itself.
  void finish(const IntegerResult &result, const ResultColumns &parameters, int64_t panel, int64_t column,
              int64_t aRow, const int16_t *zero, bool &hasRowSums) {
    int32_t *c = sums + panel * range.rows * kIntegerColumns;
    bool hasZeros = std::any_of(zero, zero + kIntegerColumns, [](int16_t z) { return z != 0; });
    if (hasZeros && !hasRowSums) {
      for (int64_t r = 0; r < range.rows; ++r)
        rowSums[r] = ops.rowSum(rows + r * rowBytes(ops, plan.k), plan.k, zeros[r]);
      hasRowSums = true;
    }
    if (hasZeros)
      takeOffZeros(c, range.rows, rowSums, zero);
    result.store(ops, parameters, c, range.rows, aRow, placeOf(result, column));
  }
};

} // namespace

void prepareMatmulInteger(const KernelCall &call, KernelWork &work) { prepare(call, work, false); }
void prepareQlinearMatmul(const KernelCall &call, KernelWork &work) { prepare(call, work, true); }

template <Isa isa>
void runMatmulInteger(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const State &state = work.get<State>();
  TileScope tiles(isa);
  const MatmulPlan &plan = state.plan;
  const TensorView &b = call.in[(state.isQlinear ? kQlinearOperands : kIntegerOperands).b];
  const IgemmOps &ops =
      plan.isPacked && plan.n > 0
          ? igemmOpsFor(isa, bytesOf(b), plan.k, plan.m / std::max<int64_t>(plan.grid.rows, 1))
          : igemmOps(isa);
  for (uint32_t index = part.begin; index < part.end; ++index)
    Tile{call, state, ops, matmulTile(plan, index), part.scratch}.run();
}
template void runMatmulInteger<Isa::Baseline>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runMatmulInteger<Isa::Avx2>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runMatmulInteger<Isa::Avx512>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runMatmulInteger<Isa::Amx>(const KernelCall &, const KernelWork &, const KernelPart &);

} // namespace dspark
