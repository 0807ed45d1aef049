// packed_experts: y[t, s] = act(x[t, s] W[expert[t, s]]^T), with all experts' weights packed one after
// another.
//
//   phase 0   pairs (t, s) are sorted by expert: a stable counting sort
//   phase 1   their rows are gathered in that order, quantised for int8 arithmetic
//   phase 2   an expert's rows are one product with its weights; results go to where their pairs are
//
// An expert's weights are read once per step, however many rows it has. A row's result is that of the packed
// product (packed.h), so it does not depend on which rows share its expert.
#include "kernels/matmul/packed_experts.h"
#include "kernels/common/operand.h"
#include "kernels/matmul/epilogue.h"
#include "kernels/matmul/packed.h"
#include <algorithm>
#include <cstring>

namespace dspark {
namespace {

struct State {
  PackedFormat format;
  Epilogue epilogue;
  bool isInt8, isGated;
  int64_t pairs, slots, k, n, experts; // n: columns of the result
  bool sharesRows;                     // x has one row for all slots of a t
  int64_t steps, panelBytes, expertBytes;
  int64_t orderAt, rowsAt; // bytes into shared scratch; the offsets of experts come first
  uint32_t columnTiles;
};
static_assert(sizeof(State) <= 512);

int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }
int64_t panelsOf(int64_t n) { return (n + kPackedColumns - 1) / kPackedColumns; }
/// Floats of a thread's scratch before the results of one panel.
constexpr int64_t kResultAt = kPackedScratchFloats;

// Pairs order[offsets[e]] to order[offsets[e + 1]] are expert e's; the last bucket has those of no expert.
struct Groups {
  int64_t *offsets; // [experts + 2]
  int64_t *order;   // [pairs]
};
Groups groupsAt(const State &state, std::byte *shared) {
  return {reinterpret_cast<int64_t *>(shared), reinterpret_cast<int64_t *>(shared + state.orderAt)};
}

void sortPairs(const KernelCall &call, const State &state, Groups groups) {
  auto bucketOf = [&](int64_t pair) {
    int64_t expert = intAt(call.in[2], pair);
    return expert < 0 || expert >= state.experts ? state.experts : expert;
  };
  std::fill_n(groups.offsets, state.experts + 2, 0);
  for (int64_t pair = 0; pair < state.pairs; ++pair)
    ++groups.offsets[bucketOf(pair) + 1];
  for (int64_t e = 0; e <= state.experts; ++e)
    groups.offsets[e + 1] += groups.offsets[e];
  for (int64_t pair = 0; pair < state.pairs; ++pair)
    groups.order[groups.offsets[bucketOf(pair)]++] = pair;
  for (int64_t e = state.experts; e > 0; --e) // each offset has moved to the next one's place
    groups.offsets[e] = groups.offsets[e - 1];
  groups.offsets[0] = 0;
}

QuantizedRows rowsAt(const State &state, const PackedOps &ops, std::byte *shared, int64_t row) {
  QuantizedRows rows = {reinterpret_cast<uint8_t *>(shared + state.rowsAt), state.steps,
                        ops.codeBytes(state.format)};
  rows.records += row * rows.rowBytes();
  return rows;
}

void gatherRows(const KernelCall &call, const State &state, const PackedOps &ops, const KernelPart &part,
                int64_t tiles) {
  Groups groups = groupsAt(state, part.shared);
  for (int64_t at = state.pairs * part.begin / tiles; at < state.pairs * part.end / tiles; ++at) {
    int64_t pair = groups.order[at];
    if (at >= groups.offsets[state.experts]) {
      std::fill_n(call.out[0].as<float>() + pair * state.n, state.n, 0.0f);
      continue;
    }
    const float *x = call.in[0].as<float>() + (state.sharesRows ? pair / state.slots : pair) * state.k;
    if (state.isInt8)
      ops.quantize(x, state.k, state.format, rowsAt(state, ops, part.shared, at));
    else
      std::copy_n(x, state.k, reinterpret_cast<float *>(part.shared + state.rowsAt) + at * state.k);
  }
}

// Rows [begin, begin + rows) of the sorted ones with a panel of their expert.
void multiplyPanel(const KernelCall &call, const State &state, const PackedOps &ops, const KernelPart &part,
                   PackedTile tile, int64_t begin, int64_t column) {
  auto *scratch = reinterpret_cast<float *>(part.scratch), *result = scratch + kResultAt;
  tile.quantized = rowsAt(state, ops, part.shared, begin);
  tile.a = reinterpret_cast<const float *>(part.shared + state.rowsAt) + begin * state.k;
  tile.columns = std::min(kPackedColumns, state.n - column);
  tile.c = result;
  tile.cRow = kPackedColumns;
  tile.scratch = scratch;
  ops.tile(tile);
  const int64_t *order = groupsAt(state, part.shared).order + begin;
  for (int64_t row = 0; row < tile.rows; ++row)
    std::copy_n(result + row * kPackedColumns, tile.columns,
                call.out[0].as<float>() + order[row] * state.n + column);
}

void multiply(const KernelCall &call, const State &state, const PackedOps &ops, const KernelPart &part,
              uint32_t index) {
  int64_t expert = index / state.columnTiles, slab = index % state.columnTiles;
  Groups groups = groupsAt(state, part.shared);
  int64_t begin = groups.offsets[expert], end = groups.offsets[expert + 1];
  if (begin == end)
    return;
  PackedTile tile = {};
  tile.format = state.format;
  tile.panelBytes = state.panelBytes;
  tile.k = tile.aRow = state.k;
  tile.isInt8 = state.isInt8;
  tile.isGated = state.isGated;
  tile.epilogue = state.epilogue;
  int64_t panels = panelsOf(state.n), perPanel = state.isGated ? 2 : 1;
  const uint8_t *weights = call.in[1].as<uint8_t>() + expert * state.expertBytes;
  for (int64_t panel = panels * slab / state.columnTiles; panel < panels * (slab + 1) / state.columnTiles;
       ++panel) {
    tile.panels = weights + panel * perPanel * state.panelBytes;
    for (int64_t row = begin; row < end; row += kPackedRows) {
      tile.rows = std::min(kPackedRows, end - row);
      multiplyPanel(call, state, ops, part, tile, row, panel * kPackedColumns);
    }
  }
}

} // namespace

void preparePackedExperts(const KernelCall &call, KernelWork &work) {
  State &state = work.make<State>();
  const TensorView &x = call.in[0], &weights = call.in[1], &y = call.out[0];
  state.format = *PackedFormat::named(call.attrs.s("packed", ""));
  state.epilogue.read(call.attrs);
  state.isGated = call.attrs.i("gated", 0) != 0;
  state.isInt8 = call.attrs.s("arithmetic", "") == "int8" && !state.format.isFloat();
  state.slots = y.dim(1);
  state.pairs = y.dim(0) * y.dim(1);
  state.k = x.dim(2);
  state.n = y.dim(2);
  state.experts = weights.dim(0);
  state.sharesRows = x.dim(1) == 1;
  state.steps = (state.k + kStepTerms - 1) / kStepTerms;
  state.panelBytes = state.format.panelBytes(state.k);
  int64_t panels = panelsOf(state.n) * (state.isGated ? 2 : 1);
  state.expertBytes = panels * state.panelBytes;
  state.orderAt = aligned((state.experts + 2) * int64_t(sizeof(int64_t)));
  state.rowsAt = aligned(state.orderAt + state.pairs * int64_t(sizeof(int64_t)));
  int64_t rowBytes = state.isInt8
                         ? QuantizedRows::rowBytes(state.steps, 2 * kStepTerms) // split codes, at most
                         : state.k * int64_t(sizeof(float));
  work.scratchShared = size_t(state.rowsAt + state.pairs * rowBytes);
  work.scratchPerThread = size_t(kResultAt + kPackedRows * kPackedColumns) * sizeof(float);
  // Slabs of no less than 64 KiB of weights; experts without rows cost a look at their offsets.
  state.columnTiles =
      uint32_t(std::clamp<int64_t>(state.expertBytes >> 16, 1, std::clamp<int64_t>(panels, 1, 8)));
  work.phases = 3;
  work.tiles[1] =
      uint32_t(std::clamp<int64_t>(state.pairs * state.k >> 14, 1, std::clamp<int64_t>(state.pairs, 1, 64)));
  work.tiles[2] = uint32_t(state.experts) * state.columnTiles;
  double active = double(std::min(state.pairs, state.experts));
  work.flops = 2.0 * double(state.pairs) * double(state.k) * double(panels * kPackedColumns);
  work.bytes = active * double(state.expertBytes) + 4.0 * double(state.pairs) * double(state.k + state.n);
}

template <Isa isa>
void runPackedExperts(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const State &state = work.get<State>();
  if (part.phase == 0)
    return sortPairs(call, state, groupsAt(state, part.shared));
  if (part.phase == 1)
    return gatherRows(call, state, packedOps(isa), part, work.tiles[1]);
  for (uint32_t tile = part.begin; tile < part.end; ++tile)
    multiply(call, state, packedOps(isa), part, tile);
}

template void runPackedExperts<Isa::Baseline>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runPackedExperts<Isa::Avx2>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runPackedExperts<Isa::Avx512>(const KernelCall &, const KernelWork &, const KernelPart &);

} // namespace dspark
