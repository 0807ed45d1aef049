// matmul and matmul_dequant on f32 rows: cuts the product into tiles, gathers row addresses, and makes panels
// of B in scratch where the plan holds none.
#include "kernels/matmul/matmul_f32.h"
#include "kernels/common/tiles.h"
#include "kernels/matmul/gemm.h"
#include "kernels/matmul/matmul_plan.h"
#include <algorithm>

namespace dspark {
namespace {

// Operand numbers of the two operators.
struct Operands {
  size_t scale, zero, bias, residual;
};
constexpr size_t kAbsent = 99;
constexpr Operands kMatmul = {kAbsent, kAbsent, 2, 3}, kDequant = {2, 3, 4, 5};

struct State {
  MatmulPlan plan;
  bool isDequant;
  int64_t groupPanels; // panels made in scratch at a time; 0 when B is read as it is
  int64_t copyAt, panelsAt, transposedAt, scaleAt; // offsets into scratch, in floats
  int64_t partsAt;                                 // the same, or -1: no tiles
};
static_assert(sizeof(State) <= 512);

// Scratch is counted in floats; every part begins at a cache line.
int64_t take(int64_t &used, int64_t floats) {
  int64_t at = used;
  used += (floats + 15) / 16 * 16;
  return at;
}

void prepareF32(const KernelCall &call, KernelWork &work, bool isDequant, bool hasTiles = false) {
  State &state = work.make<State>();
  MatmulPlan &plan = state.plan;
  bool packed = !call.attrs.s("packed", "").empty();
  bool transA = !isDequant && call.attrs.i("trans_a", 0) != 0;
  plan.read(call.in[0], call.in[1], call.out[0], transA, call.attrs.i("trans_b", 0) != 0, packed);
  plan.epilogue.read(call.attrs);
  state.isDequant = isDequant;
  work.tiles[0] = plan.cut(kMaxTileRows);
  int64_t rows = plan.m / plan.grid.rows + 1, used = 0;
  bool makesPanels = isDequant || !packed;
  // Few rows want several panels at a time, as long as they stay in the L2 cache.
  state.groupPanels = !makesPanels ? 0 : plan.k * 4 * kPanel * 4 <= 256 * 1024 ? 4 : 1;
  state.panelsAt = take(used, state.groupPanels * plan.k * kPanel);
  state.scaleAt = take(used, isDequant ? state.groupPanels * kPanel : 0);
  state.transposedAt = take(used, plan.aTerm != 1 ? rows * plan.k : 0);
  state.copyAt = take(used, plan.k > kBlockTerms ? kGemmCopyFloats : 0);
  state.partsAt = hasTiles ? take(used, kGemmPartElements / 2) : -1;
  work.scratchPerThread = size_t(used) * sizeof(float);
  work.flops = 2.0 * double(plan.m) * double(plan.n) * double(plan.k) * double(plan.batches);
  work.bytes =
      4.0 * double(plan.batches) * (double(plan.m) * double(plan.k) + double(plan.m) * double(plan.n)) +
      double(call.in[1].elements()) * dtypeBits(call.in[1].type) / 8;
}

// Panels of `columns` columns of B from `column` on, and for 8-bit weights their scales.
void makePanels(const KernelCall &call, const State &state, const GemmOps &ops, int64_t bOffset,
                int64_t column, int64_t columns, float *scratch) {
  const MatmulPlan &plan = state.plan;
  for (int64_t p = 0; columns > 0; ++p, columns -= kPanel) {
    int64_t from = column + p * kPanel;
    float *panel = scratch + state.panelsAt + p * plan.k * kPanel;
    if (!state.isDequant) {
      ops.pack(past(call.in[1].as<float>(), bOffset + from * plan.bColumn), plan.k, columns, plan.bTerm,
               plan.bColumn, panel);
      continue;
    }
    bool isSigned = call.in[1].type == DType::I8;
    float zero[kPanel] = {};
    const TensorView &scale = call.in[kDequant.scale], &zeros = call.input(kDequant.zero);
    for (int64_t j = 0; j < std::min(columns, kPanel); ++j) {
      int64_t z = zeros.present() && zeros.elements() > 1 ? from + j : 0;
      if (zeros.present())
        zero[j] = isSigned ? float(zeros.as<int8_t>()[z]) : float(zeros.as<uint8_t>()[z]);
      scratch[state.scaleAt + p * kPanel + j] = scale.as<float>()[scale.elements() > 1 ? from + j : 0];
    }
    const int8_t *b = call.in[1].as<int8_t>();
    if (plan.isPacked)
      ops.widen(past(b, from * plan.k), isSigned, plan.k, kPanel, kPanel, 1, zero, panel);
    else
      ops.widen(past(b, from * plan.bColumn), isSigned, plan.k, columns, plan.bTerm, plan.bColumn, zero,
                panel);
  }
}

// Addresses of the tile's rows; a transposed A is turned in scratch first.
void gatherRows(const KernelCall &call, const State &state, const MatmulRange &range, int64_t aOffset,
                float *scratch, const float **a) {
  const MatmulPlan &plan = state.plan;
  const float *source = past(call.in[0].as<float>(), aOffset + range.row * plan.aRow);
  if (plan.aTerm == 1) {
    for (int64_t r = 0; r < range.rows; ++r)
      a[r] = past(source, r * plan.aRow);
    return;
  }
  float *turned = scratch + state.transposedAt;
  for (int64_t r = 0; r < range.rows; ++r)
    a[r] = turned + r * plan.k;
  for (int64_t k = 0; k < plan.k; ++k)
    for (int64_t r = 0; r < range.rows; ++r)
      turned[r * plan.k + k] = source[k * plan.aTerm + r * plan.aRow];
}

void runTile(const KernelCall &call, const State &state, const GemmOps &ops, const MatmulRange &range,
             float *scratch) {
  if (range.rows <= 0 || range.columns <= 0)
    return;
  const MatmulPlan &plan = state.plan;
  const Operands &operands = state.isDequant ? kDequant : kMatmul;
  int64_t aOffset, bOffset;
  plan.offsets(range.batch, aOffset, bOffset);
  const float *a[kMaxTileRows];
  float *c[kMaxTileRows];
  gatherRows(call, state, range, aOffset, scratch, a);
  int64_t first = (range.batch * plan.m + range.row) * plan.n;
  const TensorView &bias = call.input(operands.bias), &residual = call.input(operands.residual);

  GemmTile tile = {};
  tile.a = a;
  tile.aStride = range.rows;
  tile.c = c;
  tile.rows = range.rows;
  tile.taps = 1;
  tile.depth = plan.k;
  tile.panelStride = plan.k * kPanel;
  tile.epilogue = plan.epilogue;
  tile.copy = plan.k > kBlockTerms ? scratch + state.copyAt : nullptr;
  tile.parts = state.partsAt < 0 ? nullptr : reinterpret_cast<uint16_t *>(scratch + state.partsAt);
  // All columns at once where B is packed, else as many as are packed at a time.
  int64_t step = state.groupPanels ? state.groupPanels * kPanel : range.columns;
  for (int64_t done = 0; done < range.columns; done += step) {
    int64_t column = range.column + done;
    for (int64_t r = 0; r < range.rows; ++r)
      c[r] = call.out[0].as<float>() + first + r * plan.n + column;
    tile.columns = std::min(step, range.columns - done);
    tile.bias = bias.present() ? bias.as<float>() + column : nullptr;
    tile.residual = residual.present() ? residual.as<float>() + first + column : nullptr;
    if (state.groupPanels) {
      makePanels(call, state, ops, bOffset, column, tile.columns, scratch);
      tile.b = scratch + state.panelsAt;
      tile.scale = state.isDequant ? scratch + state.scaleAt : nullptr;
    } else {
      tile.b = past(call.in[1].as<float>(), bOffset + column * plan.k);
    }
    ops.tile(tile);
  }
}

} // namespace

bool acceptsMatmulF32(const KernelCall &call) { return call.in[0].type == DType::F32; }
bool acceptsMatmulTiles(const KernelCall &call) {
  if (!acceptsMatmulF32(call) || call.attrs.s("packed", "").empty())
    return false;
  constexpr int64_t kFewestWeights = 512 * 1024, kFewestTerms = 64, kFewestColumns = 32;
  MatmulPlan plan;
  plan.read(call.in[0], call.in[1], call.out[0], call.attrs.i("trans_a", 0) != 0,
            call.attrs.i("trans_b", 0) != 0, true);
  return plan.k >= kFewestTerms && plan.n >= kFewestColumns && plan.k * plan.n >= kFewestWeights;
}

void prepareMatmulF32(const KernelCall &call, KernelWork &work) { prepareF32(call, work, false); }
void prepareMatmulTiles(const KernelCall &call, KernelWork &work) { prepareF32(call, work, false, true); }
void prepareMatmulDequant(const KernelCall &call, KernelWork &work) { prepareF32(call, work, true); }

template <Isa isa> void runMatmulF32(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const State &state = work.get<State>();
  TileScope tiles(isa);
  state.plan.grid.forEachRun(part.begin, part.end, [&](uint32_t tile, int64_t sideBySide) {
    runTile(call, state, gemmOps(isa), matmulTile(state.plan, tile, sideBySide),
            reinterpret_cast<float *>(part.scratch));
  });
}
template void runMatmulF32<Isa::Baseline>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runMatmulF32<Isa::Avx2>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runMatmulF32<Isa::Avx512>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runMatmulF32<Isa::Amx>(const KernelCall &, const KernelWork &, const KernelPart &);

} // namespace dspark
