// LSTM on products of bytes: W and R have 8 bits, and what they are multiplied by is rounded to 8 bits first.
// Sums of products are exact; scales, biases and the cell are f32.
//
//   phase 0  W and R into panels, unless the plan holds them so
//   phase 1  inputs to bytes, with one scale for all steps of a sequence
//   phase 2  x[t, b] @ W + biases for every direction, in tiles of rows
//   phase 3  the steps; hidden states become bytes anew in each, with one scale per row
//
// For a batch of one these are the scales that onnxruntime takes. It has one scale for the whole batch; here
// a row's result does not depend on the others.
#include "kernels/rnn/rnn_integer.h"
#include "kernels/common/byte_tiles.h"
#include "kernels/common/shares.h"
#include "kernels/matmul/integer_result.h"
#include "kernels/matmul/matmul_plan.h"
#include "kernels/quant/quant_loops.h"
#include "kernels/rnn/byte_product.h"
#include "kernels/rnn/recurrence.h"
#include <algorithm>

namespace dspark {
namespace {

constexpr size_t kW = 1, kR = 2, kScaleOfW = 8, kScaleOfR = 10; // operands; zero points follow scales

struct State {
  RnnPlan plan;
  TileGrid grid; // of phase 2, per direction
  int8_t inputPhase;
  int64_t w, r, inputs, scales, projected; // shared scratch, in bytes
  int64_t bias, row, product;              // a thread's scratch, in bytes
  RecurrenceScratch recurrence;
};

int64_t panelsOf(int64_t columns) { return ceilOf(columns, kIntegerColumns); }
// Without, the batch may be of any size.
bool hasInputs(const RnnPlan &plan) { return plan.steps > 0 && (plan.input > 0 || plan.hidden > 0); }
int64_t tileRows(const RnnPlan &plan) {
  return std::max(std::min(integerTileRows(plan.input), plan.steps * plan.batch),
                  std::min(kBatchBlock, plan.batch));
}

void layOutScratch(State &state, KernelWork &work) {
  const RnnPlan &plan = state.plan;
  int64_t used = 0;
  auto take = [&](int64_t bytes) { return takeBytes(used, bytes); };
  int64_t panels = plan.isPacked ? 0 : plan.directions * panelsOf(plan.width());
  state.w = take(panels * packedPanelBytes(plan.input));
  state.r = take(panels * packedPanelBytes(plan.hidden));
  state.inputs = take(plan.steps * plan.batch * plan.input);
  state.scales = take(hasInputs(plan) ? plan.batch * int64_t(sizeof(ByteScale)) : 0);
  state.projected = take(plan.directions * plan.steps * plan.batch * plan.width() * 4);
  work.scratchShared = size_t(used);

  int64_t floats = 0;
  state.recurrence = RecurrenceScratch(plan, floats);
  used = floats * 4;
  state.bias = take(plan.width() * 4);
  state.row = take(plan.hidden);
  state.product =
      take(ByteProduct::scratchBytes(tileRows(plan), std::max(plan.input, plan.hidden), plan.width()));
  work.scratchPerThread = size_t(used);
}

// One call's operands and scratch.
struct Layer {
  const KernelCall &call;
  const State &state;
  const KernelPart &part;
  Isa isa;
  const RnnPlan &plan = state.plan;

  template <typename T> T *shared(int64_t at) const { return reinterpret_cast<T *>(part.shared + at); }
  template <typename T> T *own(int64_t at) const { return reinterpret_cast<T *>(part.scratch + at); }

  // W or R of one direction; `scales` is the operand of its scales.
  ByteMatrix matrix(size_t operand, size_t scales, int64_t d) const {
    const TensorView &weights = call.in[operand], &scale = call.in[scales], &zero = call.input(scales + 1);
    bool isPerColumn = scale.rank == 2;
    int64_t at = isPerColumn ? d * plan.width() : d;
    ByteMatrix m;
    m.k = operand == kW ? plan.input : plan.hidden;
    m.width = plan.width();
    const std::byte *all =
        plan.isPacked ? weights.as<std::byte>() : shared<std::byte>(operand == kW ? state.w : state.r);
    m.panels = all + d * m.panelCount() * packedPanelBytes(m.k);
    m.scale = scale.as<float>() + at;
    m.zero = zero.present() ? zero.as<std::byte>() + at : nullptr;
    m.step = isPerColumn ? 1 : 0;
    m.isSigned = weights.type == DType::I8;
    return m;
  }

  void packPanels(uint32_t tiles) const {
    int64_t panels = panelsOf(plan.width());
    RowRange range(plan.directions * panels, tiles, part);
    for (int64_t p = range.begin; p < range.end; ++p)
      for (size_t operand : {kW, kR}) {
        const TensorView &weights = call.in[operand];
        int64_t depth = operand == kW ? plan.input : plan.hidden, column = p % panels * kIntegerColumns;
        igemmOps(isa).pack(
            past(weights.as<std::byte>(), p / panels * depth * plan.width() + column),
            weights.type == DType::I8, depth, std::min(kIntegerColumns, plan.width() - column), plan.width(),
            1, shared<std::byte>(operand == kW ? state.w : state.r) + p * packedPanelBytes(depth));
      }
  }

  void quantizeInputs(uint32_t tiles) const {
    const QuantLoops &loops = quantLoops(isa);
    RowRange range(hasInputs(plan) ? plan.batch : 0, tiles, part);
    for (int64_t b = range.begin; b < range.end; ++b) {
      int64_t length = plan.length(call, b);
      auto rowOf = [&](int64_t t) { return past(call.in[0].as<float>(), plan.xRow(t, b) * plan.input); };
      float low = 0, high = 0; // zero is always representable
      for (int64_t t = 0; t < length; ++t)
        loops.range(rowOf(t), plan.input, &low, &high);
      ByteScale scale = ByteScale::of(low, high);
      shared<ByteScale>(state.scales)[b] = scale;
      for (int64_t t = 0; t < plan.steps; ++t) {
        uint8_t *bytes = shared<uint8_t>(state.inputs) + plan.xRow(t, b) * plan.input;
        if (t < length)
          loops.quantizeU8(rowOf(t), &scale.scale, &scale.zero, 0, bytes, plan.input);
        else // nobody reads the product
          std::fill_n(bytes, plan.input, scale.zero);
      }
    }
  }

  void project(uint32_t tile) const {
    int64_t column = tile % state.grid.columns, rest = tile / state.grid.columns;
    int64_t row = rest % state.grid.rows, d = rest / state.grid.rows, all = plan.steps * plan.batch;
    int64_t first = all * row / state.grid.rows, rows = all * (row + 1) / state.grid.rows - first;
    ByteMatrix w = matrix(kW, kScaleOfW, d);
    int64_t begin = w.panelCount() * column / state.grid.columns,
            end = w.panelCount() * (column + 1) / state.grid.columns;
    if (begin == end || rows <= 0)
      return;
    ByteProduct product(igemmOpsFor(isa, w.panels, plan.input, all / state.grid.rows), w, tileRows(plan),
                        own<std::byte>(state.product));
    for (int64_t r = 0; r < rows; ++r) {
      int64_t b = plan.isBatchFirst ? (first + r) / plan.steps : (first + r) % plan.batch;
      product.setRow(r, shared<uint8_t>(state.inputs) + (first + r) * plan.input,
                     shared<ByteScale>(state.scales)[b]);
    }
    plan.addBiases(call, d, own<float>(state.bias));
    product.run(rows, begin, end, own<float>(state.bias),
                shared<float>(state.projected) + (d * all + first) * plan.width(), plan.width());
  }

  void recur(uint32_t tile) const;
};

// Hidden states as bytes times R.
class HiddenByteProduct final : public HiddenProduct {
public:
  HiddenByteProduct(const Layer &layer, const ByteMatrix &r)
      : layer(layer), matrix(r),
        product(igemmOps(layer.isa), r, tileRows(layer.plan), layer.own<std::byte>(layer.state.product)) {}

  void run(int64_t rows, const float *source, int64_t from, float *to, int64_t stride) override {
    const QuantLoops &loops = quantLoops(layer.isa);
    uint8_t *bytes = layer.own<uint8_t>(layer.state.row);
    for (int64_t r = 0; r < rows; ++r) {
      const float *row = source + r * matrix.k;
      float low = 0, high = 0;
      loops.range(row, matrix.k, &low, &high);
      ByteScale scale = ByteScale::of(low, high);
      loops.quantizeU8(row, &scale.scale, &scale.zero, 0, bytes, matrix.k);
      product.setRow(r, bytes, scale);
    }
    product.run(rows, from / kIntegerColumns, matrix.panelCount(), nullptr, to - from, stride);
  }

private:
  const Layer &layer;
  const ByteMatrix &matrix;
  ByteProduct product;
};

void Layer::recur(uint32_t tile) const {
  BatchBlock block(plan, tile);
  ByteMatrix r = matrix(kR, kScaleOfR, block.direction);
  HiddenByteProduct product(*this, r);
  Recurrence(call, plan, state.recurrence, cellOps(isa), product, shared<float>(state.projected),
             own<float>(0), block)
      .run();
}

} // namespace

void prepareDynamicQuantizeLstm(const KernelCall &call, KernelWork &work) {
  State &state = work.make<State>();
  RnnPlan &plan = state.plan;
  plan.read(call, 4);
  plan.hidden = call.in[kR].dim(1); // R is [hidden, 4 * hidden] here
  layOutScratch(state, work);
  state.inputPhase = plan.isPacked ? 0 : 1;
  work.phases = state.inputPhase + 3;
  int64_t weights = plan.directions * plan.width() * (plan.input + plan.hidden);
  if (!plan.isPacked)
    work.tiles[0] = tilesForBytes(weights);
  work.tiles[state.inputPhase] =
      uint32_t(std::clamp<int64_t>(plan.batch, 1, tilesForBytes(4 * plan.steps * plan.batch * plan.input)));
  state.grid = cutProduct(plan.steps * plan.batch, plan.width(), plan.input, plan.directions,
                          integerTileRows(plan.input));
  work.tiles[state.inputPhase + 1] = uint32_t(plan.directions * state.grid.rows * state.grid.columns);
  work.tiles[state.inputPhase + 2] = BatchBlock::tiles(plan);
  work.flops = plan.flops();
  work.bytes = 4 * double(call.in[0].elements()) + double(weights);
}

template <Isa isa>
void runDynamicQuantizeLstm(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const State &state = work.get<State>();
  Layer layer{call, state, part, isa};
  if (part.phase < state.inputPhase)
    layer.packPanels(work.tiles[part.phase]);
  else if (part.phase == state.inputPhase)
    layer.quantizeInputs(work.tiles[part.phase]);
  else
    for (uint32_t tile = part.begin; tile < part.end; ++tile)
      if (part.phase == state.inputPhase + 1)
        layer.project(tile);
      else
        layer.recur(tile);
}
template void runDynamicQuantizeLstm<Isa::Baseline>(const KernelCall &, const KernelWork &,
                                                    const KernelPart &);
template void runDynamicQuantizeLstm<Isa::Avx2>(const KernelCall &, const KernelWork &, const KernelPart &);
template void runDynamicQuantizeLstm<Isa::Avx512>(const KernelCall &, const KernelWork &, const KernelPart &);

} // namespace dspark
