// matmul with packed weights, and multi_matmul: several products of one A. Phase 0 quantises (widens, splits)
// the rows of A into shared scratch, phase 1 multiplies; with f32 rows and f32 arithmetic there are only the
// products. Those of multi_matmul are cut as if their weights lay one behind the other, so that a tile may
// end one and begin the next.
#include "kernels/matmul/matmul_packed.h"
#include "kernels/common/bf16_speed.h"
#include "kernels/common/element.h"
#include "kernels/common/tiles.h"
#include "kernels/matmul/matmul_plan.h"
#include "kernels/matmul/packed.h"
#include <algorithm>

namespace dspark {
namespace {

struct State {
  PackedFormat format;
  Epilogue epilogue;
  bool isInt8, isGated, isWidened; // isWidened: A and the result are f16 or bf16
  bool isRounded;                  // rows become bf16 in f32: no fast instructions for them
  bool hasDots;                    // packedOpsAvx512Bf16
  int parts;                       // that phase 0 splits rows into, or 0
  int64_t m, k;
  int64_t panels; // of all results, 16 columns each
  int64_t steps, panelBytes;
  int64_t resultAt; // floats into a thread's scratch, when widened: [rows][16] columns, bias, residual
  uint32_t rowTiles, columnTiles;
  bool hasRows; // phase 0 exists
};
static_assert(sizeof(State) <= 512);

// One product's operands: matmul has B, bias? and residual?, multi_matmul a B and a bias? for each result.
struct Product {
  const TensorView &b, &bias, &residual, &y;

  static Product of(const KernelCall &call, size_t i) {
    bool isOnly = call.out.size() == 1;
    return {call.in[1 + 2 * i], call.input(2 + 2 * i), call.input(isOnly ? 3 : call.in.size()), call.out[i]};
  }
  int64_t columns() const { return y.dim(y.rank - 1); }
  int64_t panels() const { return (columns() + kPackedColumns - 1) / kPackedColumns; }
};

// Slabs of panels: enough for many threads, but none far below 64 KiB of weights, where a hand-over would
// show. An even number, for two threads.
void cut(State &state, KernelWork &work) {
  int64_t rowTiles = std::max<int64_t>((state.m + kPackedRows - 1) / kPackedRows, 1);
  int64_t panels = std::max<int64_t>(state.panels, 1), bytes = panels * state.panelBytes;
  state.rowTiles = uint32_t(std::min<int64_t>(rowTiles, UINT32_MAX / 64));
  int64_t slabs = bytes >> 16;
  state.columnTiles =
      uint32_t(std::clamp<int64_t>(slabs + (slabs > 1 && slabs % 2 == 1), 1, std::min<int64_t>(panels, 32)));
  work.tiles[state.hasRows ? 1 : 0] = state.rowTiles * state.columnTiles;
}

struct Share {
  int64_t begin, count;
};
Share share(int64_t total, uint32_t part, uint32_t parts) {
  int64_t begin = total * part / parts;
  return {begin, total * (part + 1) / parts - begin};
}

// Elements [at, at + n) of a tensor of f32, f16 or bf16 as f32.
void widen(const TensorView &t, int64_t at, int64_t n, float *out) {
  dispatchFloat(t.type, [&]<typename T>() {
    const T *from = t.as<T>() + at;
    for (int64_t i = 0; i < n; ++i)
      out[i] = float(from[i]);
  });
}

SplitRows splitRowsAt(const State &state, std::byte *shared, int64_t row) {
  int64_t elements = SplitRows::rowElementsOf(state.k, state.parts);
  return {reinterpret_cast<uint16_t *>(shared) + row * elements, elements, state.parts};
}

QuantizedRows rowsAt(const State &state, const PackedOps &ops, std::byte *shared, int64_t row) {
  QuantizedRows rows = {reinterpret_cast<uint8_t *>(shared), state.steps, ops.codeBytes(state.format)};
  rows.records += row * rows.rowBytes();
  return rows;
}

void prepareRows(const KernelCall &call, const State &state, const PackedOps &ops, const KernelPart &part,
                 uint32_t tiles) {
  for (uint32_t tile = part.begin; tile < part.end; ++tile) {
    Share rows = share(state.m, tile, tiles);
    for (int64_t row = rows.begin; row < rows.begin + rows.count; ++row) {
      bool isKept = !state.isInt8 && !state.parts;
      float *wide = reinterpret_cast<float *>(isKept ? part.shared : part.scratch);
      if (isKept)
        wide += row * state.k;
      if (state.isWidened || state.isRounded)
        widen(call.in[0], row * state.k, state.k, wide);
      if (state.isRounded)
        std::transform(wide, wide + state.k, wide, [](float x) { return bf16ToF32(f32ToBf16(x)); });
      const float *from = state.isWidened ? wide : past(call.in[0].as<float>(), row * state.k);
      if (state.isInt8)
        ops.quantize(from, state.k, state.format, rowsAt(state, ops, part.shared, row));
      else if (state.parts)
        ops.split(from, state.k, splitRowsAt(state, part.shared, row));
    }
  }
}

// A panel of a result that is not f32: bias and residual are widened, sums rounded once.
void narrowPanel(const Product &product, const PackedOps &ops, PackedTile tile, int64_t row, int64_t column,
                 float *scratch) {
  float *result = scratch, *bias = result + kPackedRows * kPackedColumns, *residual = bias + kPackedColumns;
  int64_t n = product.columns();
  if (product.bias.present()) {
    widen(product.bias, column, tile.columns, bias);
    tile.bias = bias;
  }
  if (product.residual.present()) {
    for (int64_t r = 0; r < tile.rows; ++r)
      widen(product.residual, (row + r) * n + column, tile.columns, residual + r * kPackedColumns);
    tile.residual = residual;
    tile.residualRow = kPackedColumns;
  }
  tile.c = result;
  tile.cRow = kPackedColumns;
  ops.tile(tile);
  dispatchFloat(product.y.type, [&]<typename T>() {
    for (int64_t r = 0; r < tile.rows; ++r)
      for (int64_t i = 0; i < tile.columns; ++i)
        product.y.as<T>()[(row + r) * n + column + i] = T(result[r * kPackedColumns + i]);
  });
}

// Some rows of A times some panels of one B.
void multiply(const KernelCall &call, const State &state, const PackedOps &ops, const KernelPart &part,
              const Product &product, Share rows, Share panels) {
  int64_t column = panels.begin * kPackedColumns, perPanel = state.isGated ? 2 : 1, n = product.columns();
  int64_t first = rows.begin * n + column;
  PackedTile tile = {};
  tile.format = state.format;
  tile.panelBytes = state.panelBytes;
  tile.panels = product.b.as<uint8_t>() + panels.begin * perPanel * state.panelBytes;
  tile.k = state.k;
  tile.rows = rows.count;
  tile.columns = std::min(panels.count * kPackedColumns, n - column);
  tile.isInt8 = state.isInt8;
  tile.isGated = state.isGated;
  if (state.isInt8)
    tile.quantized = rowsAt(state, ops, part.shared, rows.begin);
  tile.split = splitRowsAt(state, part.shared, rows.begin);
  bool isCopied = state.isWidened || state.isRounded;
  tile.a = isCopied ? reinterpret_cast<const float *>(part.shared) : call.in[0].as<float>();
  tile.a = past(tile.a, rows.begin * state.k);
  tile.aRow = state.k;
  tile.epilogue = state.epilogue;
  tile.scratch = reinterpret_cast<float *>(part.scratch);
  if (!state.isWidened) {
    tile.c = product.y.as<float>() + first;
    tile.cRow = tile.residualRow = n;
    tile.bias = product.bias.present() ? product.bias.as<float>() + column : nullptr;
    tile.residual = product.residual.present() ? product.residual.as<float>() + first : nullptr;
    return ops.tile(tile);
  }
  for (int64_t p = 0, columns = tile.columns; p < panels.count; ++p) {
    tile.columns = std::min(kPackedColumns, columns - p * kPackedColumns);
    narrowPanel(product, ops, tile, rows.begin, column + p * kPackedColumns, tile.scratch + state.resultAt);
    tile.panels += perPanel * state.panelBytes;
  }
}

void runTile(const KernelCall &call, const State &state, const PackedOps &ops, const KernelPart &part,
             uint32_t index) {
  // Neighbouring tiles share rows, so that a thread's slab of weights is one stream.
  Share rows = share(state.m, index / state.columnTiles, state.rowTiles);
  Share panels = share(state.panels, index % state.columnTiles, state.columnTiles);
  if (rows.count <= 0)
    return;
  int64_t before = 0; // panels of earlier products
  for (size_t i = 0; i < call.out.size(); ++i) {
    Product product = Product::of(call, i);
    int64_t begin = std::max(panels.begin - before, int64_t(0));
    int64_t end = std::min(panels.begin + panels.count - before, product.panels());
    if (begin < end)
      multiply(call, state, ops, part, product, rows, {begin, end - begin});
    before += product.panels();
  }
}

enum class Halves { MultiplyAdds, Dots, Tiles }; // what multiplies weights in bf16

bool isInBf16(const KernelCall &call) { // weights and rows
  bool isRounded = call.attrs.s("arithmetic", "") == "bf16", isNarrow = call.in[0].type == DType::BF16;
  return call.attrs.s("packed", "") == "bf16" && (isRounded || isNarrow);
}

void prepare(const KernelCall &call, KernelWork &work, Halves halves) {
  State &state = work.make<State>();
  state.format = *PackedFormat::named(call.attrs.s("packed", ""));
  state.epilogue.read(call.attrs);
  state.isGated = call.attrs.i("gated", 0) != 0;
  state.isInt8 = call.attrs.s("arithmetic", "") == "int8" && !state.format.isFloat();
  state.isWidened = call.in[0].type != DType::F32;
  const TensorView &a = call.in[0];
  state.k = a.dim(a.rank - 1);
  state.m = a.elements(0, a.rank - 1);
  int64_t columns = 0;
  for (size_t i = 0; i < call.out.size(); ++i) {
    columns += Product::of(call, i).columns();
    state.panels += Product::of(call, i).panels();
  }
  state.steps = (state.k + kStepTerms - 1) / kStepTerms;
  state.panelBytes = state.format.panelBytes(state.k);
  bool isSplit = halves != Halves::MultiplyAdds && state.format.code == CodeKind::BF16;
  state.hasDots = halves == Halves::Dots;
  state.parts = !isSplit ? 0 : isInBf16(call) ? 1 : 3;
  state.isRounded = !isSplit && isInBf16(call) && a.type != DType::BF16;
  state.hasRows = state.isInt8 || state.isWidened || state.isRounded || state.parts;
  if (state.hasRows) {
    work.phases = 2;
    work.tiles[0] =
        uint32_t(std::clamp<int64_t>(state.m * state.k >> 14, 1, std::clamp<int64_t>(state.m, 1, 64)));
  }
  cut(state, work);
  if (state.isInt8) // codes split in two, at most
    work.scratchShared = size_t(state.m * QuantizedRows::rowBytes(state.steps, 2 * kStepTerms));
  else if (state.parts)
    work.scratchShared =
        size_t(SplitRows::rowsOf(state.m) * SplitRows::rowElementsOf(state.k, state.parts) * 2);
  else if (state.isWidened || state.isRounded)
    work.scratchShared = size_t(state.m * state.k * 4);
  state.resultAt = kPackedScratchFloats;
  int64_t floats = kPackedScratchFloats;
  if (state.isWidened)
    floats = std::max(floats + (2 * kPackedRows + 1) * kPackedColumns, state.k);
  work.scratchPerThread = size_t(floats) * sizeof(float);
  double panels = double(state.panels) * (state.isGated ? 2 : 1);
  work.flops = 2.0 * double(state.m) * double(state.k) * double(columns) * (state.isGated ? 2 : 1);
  work.bytes =
      panels * double(state.panelBytes) + double(state.m) * double(state.k + columns) * dtypeBits(a.type) / 8;
}

} // namespace

bool acceptsMatmulPacked(const KernelCall &call) {
  return PackedFormat::named(call.attrs.s("packed", "")).has_value();
}

bool acceptsMatmulDots(const KernelCall &call) {
  return acceptsMatmulPacked(call) && isInBf16(call) && multipliesBf16();
}

void prepareMatmulPacked(const KernelCall &call, KernelWork &work) {
  prepare(call, work, Halves::MultiplyAdds);
}
void prepareMatmulDots(const KernelCall &call, KernelWork &work) { prepare(call, work, Halves::Dots); }
void prepareMatmulPackedTiles(const KernelCall &call, KernelWork &work) {
  prepare(call, work, Halves::Tiles);
}

template <Isa isa>
void runMatmulPacked(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const State &state = work.get<State>();
  const PackedOps &ops = state.hasDots ? packedOpsAvx512Bf16 : packedOps(isa);
  if (state.hasRows && part.phase == 0)
    return prepareRows(call, state, ops, part, work.tiles[0]);
  TileScope tiles(isa, state.isInt8 ? TileDepth::Half : TileDepth::Whole);
  for (uint32_t tile = part.begin; tile < part.end; ++tile)
    runTile(call, state, ops, part, tile);
}

template void runMatmulPacked<Isa::Baseline>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runMatmulPacked<Isa::Avx2>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runMatmulPacked<Isa::Avx512>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runMatmulPacked<Isa::Amx>(const KernelCall &, const KernelWork &, const KernelPart &);

} // namespace dspark
