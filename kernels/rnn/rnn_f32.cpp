// Recurrent layers in f32: all steps' inputs in one product, then step by step the hidden state's product and
// the cell.
//
//   phase 0  W and R into panels, unless the plan holds them so
//   phase 1  x[t, b] @ W + biases for every direction, in tiles of rows
//   phase 2  the steps; one tile per direction and block of the batch
//
// A row goes through the same multiply-adds whatever the batch, the number of steps and the threads.
#include "kernels/rnn/rnn_f32.h"
#include "kernels/matmul/gemm.h"
#include "kernels/matmul/matmul_plan.h"
#include "kernels/rnn/cell.h"
#include "kernels/rnn/rnn_plan.h"
#include <algorithm>

namespace dspark {
namespace {

constexpr int64_t kBatchBlock = 12; // rows that go through the steps together

struct State {
  RnnPlan plan;
  TileGrid grid; // of phase 1, per direction
  int8_t inputPhase;
  int64_t w, r, bias, projected;                   // shared scratch, in floats
  int64_t gates, third, hidden, cell, reset, copy; // a thread's scratch, in floats
};
static_assert(sizeof(State) <= 512);

int64_t take(int64_t &used, int64_t floats) {
  int64_t at = used;
  used += (floats + 15) / 16 * 16;
  return at;
}
int64_t panelsOf(int64_t columns) { return (columns + kPanel - 1) / kPanel; }
int64_t batchBlocks(const RnnPlan &plan) { return (plan.batch + kBatchBlock - 1) / kBatchBlock; }

void prepare(const KernelCall &call, KernelWork &work, int gates) {
  State &state = work.make<State>();
  RnnPlan &plan = state.plan;
  plan.read(call, gates);
  int64_t panelFloats = plan.directions * panelsOf(plan.width()) * kPanel, shared = 0, own = 0;
  state.w = take(shared, plan.isPacked ? 0 : panelFloats * plan.input);
  state.r = take(shared, plan.isPacked ? 0 : panelFloats * plan.hidden);
  state.projected = take(shared, plan.directions * plan.steps * plan.batch * plan.width());
  int64_t rows = std::min(plan.batch, kBatchBlock);
  state.bias = take(own, plan.width());
  state.gates = take(own, rows * plan.width());
  state.third = take(own, rows * (plan.hidden + kPanel));
  state.hidden = take(own, rows * plan.hidden);
  state.cell = take(own, rows * plan.hidden);
  state.reset = take(own, rows * plan.hidden);
  state.copy = take(own, std::max(plan.input, plan.hidden) > kBlockTerms ? kGemmCopyFloats : 0);
  work.scratchShared = size_t(shared) * sizeof(float);
  work.scratchPerThread = size_t(own) * sizeof(float);

  state.inputPhase = plan.isPacked ? 0 : 1;
  work.phases = state.inputPhase + 2;
  if (!plan.isPacked)
    work.tiles[0] =
        uint32_t(std::clamp<int64_t>(panelFloats * (plan.input + plan.hidden) / (16 * 1024), 1, 16));
  state.grid = cutProduct(plan.steps * plan.batch, plan.width(), plan.input, plan.directions, kMaxTileRows);
  work.tiles[state.inputPhase] = uint32_t(plan.directions * state.grid.rows * state.grid.columns);
  work.tiles[state.inputPhase + 1] = uint32_t(plan.directions * batchBlocks(plan));
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

// The biases that are added before a step: all of them, but for gru's recurrent one of the third gate when
// the reset gate multiplies it.
void addBiases(const KernelCall &call, const RnnPlan &plan, int64_t d, float *bias) {
  const float *b = call.has(3) ? call.in[3].as<float>() + d * 2 * plan.width() : nullptr;
  int64_t both = plan.gates == 3 && plan.linearBeforeReset ? 2 * plan.hidden : plan.width();
  for (int64_t i = 0; i < plan.width(); ++i)
    bias[i] = b ? b[i] + (i < both ? b[plan.width() + i] : 0) : 0;
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
  addBiases(call, plan, d, own + state.bias);

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

// One direction of one block of the batch.
class Recurrence {
public:
  Recurrence(const KernelCall &call, const State &state, const GemmOps &ops, const CellOps &cells,
             const KernelPart &part, uint32_t tile)
      : call(call), state(state), plan(state.plan), ops(ops), cells(cells),
        shared(reinterpret_cast<float *>(part.shared)), own(reinterpret_cast<float *>(part.scratch)),
        d(tile / batchBlocks(plan)), first(tile % batchBlocks(plan) * kBatchBlock),
        rows(std::min(kBatchBlock, plan.batch - first)) {}

  void run() {
    if (rows <= 0)
      return;
    start(5, own + state.hidden);
    start(6, own + state.cell);
    for (int64_t s = 0; s < plan.steps; ++s)
      step(s);
    finish(1, own + state.hidden);
    finish(2, own + state.cell);
  }

private:
  // The initial state from operand `operand`, else zero.
  void start(size_t operand, float *to) {
    for (int64_t r = 0; r < rows; ++r)
      if (call.has(operand))
        std::copy_n(call.in[operand].as<float>() + plan.stateRow(d, first + r) * plan.hidden, plan.hidden,
                    to + r * plan.hidden);
      else
        std::fill_n(to + r * plan.hidden, plan.hidden, 0.0f);
  }
  void finish(size_t result, const float *from) {
    if (result < call.out.size() && call.out[result].present())
      for (int64_t r = 0; r < rows; ++r)
        std::copy_n(from + r * plan.hidden, plan.hidden,
                    call.out[result].as<float>() + plan.stateRow(d, first + r) * plan.hidden);
  }

  // rows of `source` times columns [from, gates * hidden) of R, into rows of `stride` floats; `from` is a
  // multiple of 16.
  void multiply(const float *source, int64_t from, float *to, int64_t stride) {
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
    product.b = panelsAt(call, state, shared, 2, d) + from / kPanel * product.panelStride;
    product.columns = plan.width() - from;
    ops.tile(product);
  }
  float *gatesOf(int64_t r) { return own + state.gates + r * plan.width(); }

  CellStep cellStep(int64_t r, int64_t t) {
    CellStep cell = {};
    cell.hidden = plan.hidden;
    cell.x =
        shared + state.projected + (d * plan.steps * plan.batch + plan.xRow(t, first + r)) * plan.width();
    cell.h = gatesOf(r);
    if (plan.gates == 3 && plan.linearBeforeReset)
      cell.resetBias = call.has(3) ? call.in[3].as<float>() + (d * 2 + 1) * plan.width() + 2 * plan.hidden
                                   : own + state.reset;
    if (plan.gates == 4 && call.has(7))
      cell.peephole = call.in[7].as<float>() + d * 3 * plan.hidden;
    cell.previous = cell.out = own + state.hidden + r * plan.hidden;
    cell.cell = own + state.cell + r * plan.hidden;
    cell.functions = plan.functions(d);
    cell.clip = plan.clip;
    cell.coupled = plan.coupled;
    return cell;
  }

  // Batch rows shorter than s rest; their y beyond the end is zero.
  int64_t timeOf(int64_t r, int64_t s) {
    int64_t length = plan.length(call, first + r);
    if (s >= length)
      return -1;
    return plan.runsBackwards(d) ? length - 1 - s : s;
  }

  void step(int64_t s) {
    multiply(own + state.hidden, 0, gatesOf(0), plan.width());
    if (plan.gates == 3 && !plan.linearBeforeReset)
      resetGates(s);
    else if (plan.gates == 3 && !call.has(3))
      std::fill_n(own + state.reset, plan.hidden, 0.0f); // stands for the bias
    for (int64_t r = 0; r < rows; ++r) {
      int64_t t = timeOf(r, s);
      if (t >= 0) {
        CellStep cell = cellStep(r, t);
        (plan.gates == 4 ? cells.lstm : plan.gates == 3 ? cells.gru : cells.rnn)(cell);
      }
      if (call.out[0].present()) {
        float *y = call.out[0].as<float>() + plan.yRow(t >= 0 ? t : s, d, first + r) * plan.hidden;
        if (t >= 0)
          std::copy_n(own + state.hidden + r * plan.hidden, plan.hidden, y);
        else
          std::fill_n(y, plan.hidden, 0.0f);
      }
    }
  }

  // gru whose reset gate acts on the hidden state itself: the third gate needs a product of its own. Its
  // columns begin in the middle of a panel where 2 * hidden is no multiple of 16, so the product goes through
  // a buffer.
  void resetGates(int64_t s) {
    float *reset = own + state.reset;
    for (int64_t r = 0; r < rows; ++r) {
      int64_t t = timeOf(r, s);
      std::fill_n(reset + r * plan.hidden, plan.hidden, 0.0f);
      if (t < 0)
        continue;
      CellStep cell = cellStep(r, t);
      cell.out = reset + r * plan.hidden;
      cells.gruReset(cell);
    }
    int64_t from = 2 * plan.hidden / kPanel * kPanel, stride = plan.hidden + kPanel;
    float *third = own + state.third;
    multiply(reset, from, third, stride);
    for (int64_t r = 0; r < rows; ++r)
      std::copy_n(third + r * stride + 2 * plan.hidden - from, plan.hidden, gatesOf(r) + 2 * plan.hidden);
  }

  const KernelCall &call;
  const State &state;
  const RnnPlan &plan;
  const GemmOps &ops;
  const CellOps &cells;
  float *shared, *own;
  int64_t d, first, rows;
};

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
      Recurrence(call, state, ops, cellOps(isa), part, tile).run();
}
template void runRnnF32<Isa::Baseline>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runRnnF32<Isa::Avx2>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runRnnF32<Isa::Avx512>(const KernelCall &, const KernelWork &, const KernelPart &);

} // namespace dspark
