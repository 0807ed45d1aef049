// Recurrent layers in f32: all steps' inputs in one product, then step by step the hidden state's product and
// the cell.
//
//   phase 0  W and R into panels, unless the plan holds them so
//   phase 1  x[t, b] @ W + biases for every direction, in tiles of rows
//   phase 2  the steps; one tile per direction and block of the batch
//
// A row goes through the same multiply-adds whatever the batch, the number of steps and the threads.
#include "kernels/rnn/rnn_f32.h"
#include "kernels/common/shares.h"
#include "kernels/matmul/gemm.h"
#include "kernels/matmul/matmul_plan.h"
#include "kernels/rnn/recurrence.h"
#include <algorithm>

namespace dspark {
namespace {

struct State {
  RnnPlan plan;
  TileGrid grid; // of phase 1, per direction
  int8_t inputPhase;
  int64_t w, r, projected; // shared scratch, in floats
  int64_t bias, copy;      // a thread's scratch, in floats
  RecurrenceScratch recurrence;
};

int64_t panelsOf(int64_t columns) { return ceilOf(columns, kPanel); }

void prepare(const KernelCall &call, KernelWork &work, int gates) {
  State &state = work.make<State>();
  RnnPlan &plan = state.plan;
  plan.read(call, gates);
  int64_t panelFloats = plan.directions * panelsOf(plan.width()) * kPanel, shared = 0, own = 0;
  state.w = takeFloats(shared, plan.isPacked ? 0 : panelFloats * plan.input);
  state.r = takeFloats(shared, plan.isPacked ? 0 : panelFloats * plan.hidden);
  state.projected = takeFloats(shared, plan.directions * plan.steps * plan.batch * plan.width());
  state.bias = takeFloats(own, plan.width());
  state.recurrence = RecurrenceScratch(plan, own);
  state.copy = takeFloats(own, std::max(plan.input, plan.hidden) > kBlockTerms ? kGemmCopyFloats : 0);
  work.scratchShared = size_t(shared) * sizeof(float);
  work.scratchPerThread = size_t(own) * sizeof(float);

  state.inputPhase = plan.isPacked ? 0 : 1;
  work.phases = state.inputPhase + 2;
  if (!plan.isPacked)
    work.tiles[0] =
        uint32_t(std::clamp<int64_t>(panelFloats * (plan.input + plan.hidden) / (16 * 1024), 1, 16));
  state.grid = cutProduct(plan.steps * plan.batch, plan.width(), plan.input, plan.directions, kMaxTileRows);
  work.tiles[state.inputPhase] = uint32_t(plan.directions * state.grid.rows * state.grid.columns);
  work.tiles[state.inputPhase + 1] = BatchBlock::tiles(plan);
  work.flops = plan.flops();
  work.bytes =
      4.0 * (double(call.in[0].elements()) + double(call.in[1].elements()) + double(call.in[2].elements()));
}

void packTile(const KernelCall &call, const State &state, const GemmOps &ops, float *shared, uint32_t tile,
              uint32_t tiles) {
  const RnnPlan &plan = state.plan;
  int64_t width = plan.width(), panels = panelsOf(width), all = plan.directions * panels;
  auto pack = [&](const TensorView &source, int64_t depth, float *out, int64_t p) {
    const float *matrix = source.as<float>() + p / panels * width * depth;
    int64_t column = p % panels * kPanel;
    ops.pack(matrix + column * depth, depth, width - column, 1, depth, out + p * depth * kPanel);
  };
  for (int64_t p = all * tile / tiles; p < all * (tile + 1) / tiles; ++p) {
    pack(call.in[1], plan.input, shared + state.w, p);
    pack(call.in[2], plan.hidden, shared + state.r, p);
  }
}

// Where direction d's panels of operand 1 (w) or 2 (r) lie.
const float *panelsAt(const KernelCall &call, const State &state, const float *shared, size_t operand,
                      int64_t d) {
  const RnnPlan &plan = state.plan;
  const float *first =
      plan.isPacked ? call.in[operand].as<float>() : shared + (operand == 1 ? state.w : state.r);
  return first + d * panelsOf(plan.width()) * kPanel * (operand == 1 ? plan.input : plan.hidden);
}

void projectTile(const KernelCall &call, const State &state, const GemmOps &ops, const KernelPart &part,
                 uint32_t tile) {
  const RnnPlan &plan = state.plan;
  float *shared = reinterpret_cast<float *>(part.shared), *own = reinterpret_cast<float *>(part.scratch);
  int64_t column = tile % state.grid.columns, rest = tile / state.grid.columns;
  int64_t row = rest % state.grid.rows, d = rest / state.grid.rows, width = plan.width(),
          panels = panelsOf(width);
  int64_t rows = plan.steps * plan.batch, first = rows * row / state.grid.rows;
  int64_t from = panels * column / state.grid.columns * kPanel;
  int64_t end = std::min(panels * (column + 1) / state.grid.columns * kPanel, width);
  plan.addBiases(call, d, own + state.bias);

  const float *a[kMaxTileRows];
  float *c[kMaxTileRows];
  GemmTile product = {};
  product.rows = rows * (row + 1) / state.grid.rows - first;
  for (int64_t r = 0; r < product.rows; ++r) {
    a[r] = call.in[0].as<float>() + (first + r) * plan.input;
    c[r] = shared + state.projected + (d * rows + first + r) * width + from;
  }
  product.a = a;
  product.aStride = product.rows;
  product.c = c;
  product.taps = 1;
  product.depth = plan.input;
  product.panelStride = plan.input * kPanel;
  product.b = panelsAt(call, state, shared, 1, d) + from / kPanel * product.panelStride;
  product.columns = end - from;
  product.bias = own + state.bias + from;
  product.copy = plan.input > kBlockTerms ? own + state.copy : nullptr;
  ops.tile(product);
}

// Blocks of hidden states times R's panels.
class PanelProduct final : public HiddenProduct {
public:
  PanelProduct(const RnnPlan &plan, const GemmOps &ops, const float *panels)
      : plan(plan), ops(ops), panels(panels) {}

  void run(int64_t rows, const float *source, int64_t from, float *to, int64_t stride) override {
    const float *a[kBatchBlock];
    float *c[kBatchBlock];
    for (int64_t r = 0; r < rows; ++r) {
      a[r] = source + r * plan.hidden;
      c[r] = to + r * stride;
    }
    GemmTile product = {};
    product.a = a;
    product.aStride = rows;
    product.c = c;
    product.rows = rows;
    product.taps = 1;
    product.depth = plan.hidden;
    product.panelStride = plan.hidden * kPanel;
    product.b = panels + from / kPanel * product.panelStride;
    product.columns = plan.width() - from;
    ops.tile(product);
  }

private:
  const RnnPlan &plan;
  const GemmOps &ops;
  const float *panels;
};

void recurTile(const KernelCall &call, const State &state, Isa isa, const KernelPart &part, uint32_t tile) {
  const float *shared = reinterpret_cast<const float *>(part.shared);
  BatchBlock block(state.plan, tile);
  PanelProduct product(state.plan, gemmOps(isa), panelsAt(call, state, shared, 2, block.direction));
  Recurrence(call, state.plan, state.recurrence, cellOps(isa), product, shared + state.projected,
             reinterpret_cast<float *>(part.scratch), block)
      .run();
}

} // namespace

bool acceptsRnnF32(const KernelCall &call) { return call.in[0].type == DType::F32; }

template <int gates> void prepareRnnF32(const KernelCall &call, KernelWork &work) {
  prepare(call, work, gates);
}
template void prepareRnnF32<4>(const KernelCall &, KernelWork &);
template void prepareRnnF32<3>(const KernelCall &, KernelWork &);
template void prepareRnnF32<1>(const KernelCall &, KernelWork &);

template <Isa isa> void runRnnF32(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const State &state = work.get<State>();
  const GemmOps &ops = gemmOps(isa);
  for (uint32_t tile = part.begin; tile < part.end; ++tile)
    if (part.phase < state.inputPhase)
      packTile(call, state, ops, reinterpret_cast<float *>(part.shared), tile, work.tiles[part.phase]);
    else if (part.phase == state.inputPhase)
      projectTile(call, state, ops, part, tile);
    else
      recurTile(call, state, isa, part, tile);
}
template void runRnnF32<Isa::Baseline>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runRnnF32<Isa::Avx2>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runRnnF32<Isa::Avx512>(const KernelCall &, const KernelWork &, const KernelPart &);

} // namespace dspark
