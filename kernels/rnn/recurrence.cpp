#include "kernels/rnn/recurrence.h"
#include "kernels/common/shares.h"
#include <algorithm>

namespace dspark {
namespace {

constexpr int64_t kPanelColumns = 16; // of R's packed form

int64_t batchBlocks(const RnnPlan &plan) { return ceilOf(plan.batch, kBatchBlock); }

} // namespace

RecurrenceScratch::RecurrenceScratch(const RnnPlan &plan, int64_t &used) {
  int64_t rows = std::min(plan.batch, kBatchBlock);
  gates = takeFloats(used, rows * plan.width());
  third = takeFloats(used, rows * (plan.hidden + kPanelColumns));
  hidden = takeFloats(used, rows * plan.hidden);
  cell = takeFloats(used, rows * plan.hidden);
  reset = takeFloats(used, rows * plan.hidden);
}

BatchBlock::BatchBlock(const RnnPlan &plan, uint32_t tile)
    : direction(tile / batchBlocks(plan)), first(tile % batchBlocks(plan) * kBatchBlock),
      rows(std::min(kBatchBlock, plan.batch - first)) {}

uint32_t BatchBlock::tiles(const RnnPlan &plan) { return uint32_t(plan.directions * batchBlocks(plan)); }

void Recurrence::run() {
  if (block.rows <= 0)
    return;
  start(5, own + scratch.hidden);
  start(6, own + scratch.cell);
  for (int64_t s = 0; s < plan.steps; ++s)
    step(s);
  finish(1, own + scratch.hidden);
  finish(2, own + scratch.cell);
}

// The initial state from operand `operand`, else zero.
void Recurrence::start(size_t operand, float *to) {
  for (int64_t r = 0; r < block.rows; ++r)
    if (call.has(operand))
      std::copy_n(call.in[operand].as<float>() +
                      plan.stateRow(block.direction, block.first + r) * plan.hidden,
                  plan.hidden, to + r * plan.hidden);
    else
      std::fill_n(to + r * plan.hidden, plan.hidden, 0.0f);
}

void Recurrence::finish(size_t result, const float *from) {
  if (result < call.out.size() && call.out[result].present())
    for (int64_t r = 0; r < block.rows; ++r)
      std::copy_n(from + r * plan.hidden, plan.hidden,
                  call.out[result].as<float>() +
                      plan.stateRow(block.direction, block.first + r) * plan.hidden);
}

CellStep Recurrence::cellStep(int64_t r, int64_t t) {
  int64_t d = block.direction;
  CellStep cell = {};
  cell.hidden = plan.hidden;
  cell.x = projected + (d * plan.steps * plan.batch + plan.xRow(t, block.first + r)) * plan.width();
  cell.h = gatesOf(r);
  if (plan.gates == 3 && plan.linearBeforeReset)
    cell.resetBias = call.has(3) ? call.in[3].as<float>() + (d * 2 + 1) * plan.width() + 2 * plan.hidden
                                 : own + scratch.reset;
  if (plan.gates == 4 && call.has(7))
    cell.peephole = call.in[7].as<float>() + d * 3 * plan.hidden;
  cell.previous = cell.out = own + scratch.hidden + r * plan.hidden;
  cell.cell = own + scratch.cell + r * plan.hidden;
  cell.functions = plan.functions(d);
  cell.clip = plan.clip;
  cell.coupled = plan.coupled;
  return cell;
}

// Batch rows shorter than s rest; their y beyond the end is zero.
int64_t Recurrence::timeOf(int64_t r, int64_t s) {
  int64_t length = plan.length(call, block.first + r);
  if (s >= length)
    return -1;
  return plan.runsBackwards(block.direction) ? length - 1 - s : s;
}

void Recurrence::step(int64_t s) {
  product.run(block.rows, own + scratch.hidden, 0, gatesOf(0), plan.width());
  if (plan.gates == 3 && !plan.linearBeforeReset)
    resetGates(s);
  else if (plan.gates == 3 && !call.has(3))
    std::fill_n(own + scratch.reset, plan.hidden, 0.0f); // stands for the bias
  for (int64_t r = 0; r < block.rows; ++r) {
    int64_t t = timeOf(r, s);
    if (t >= 0) {
      CellStep cell = cellStep(r, t);
      (plan.gates == 4 ? cells.lstm : plan.gates == 3 ? cells.gru : cells.rnn)(cell);
    }
    if (call.out[0].present()) {
      int64_t row = plan.yRow(t >= 0 ? t : s, block.direction, block.first + r);
      float *y = call.out[0].as<float>() + row * plan.hidden;
      if (t >= 0)
        std::copy_n(own + scratch.hidden + r * plan.hidden, plan.hidden, y);
      else
        std::fill_n(y, plan.hidden, 0.0f);
    }
  }
}

// gru whose reset gate acts on the hidden state itself: the third gate needs a product of its own. Its
// columns begin in the middle of a panel where 2 * hidden is no multiple of 16, so the product goes through a
// buffer.
void Recurrence::resetGates(int64_t s) {
  float *reset = own + scratch.reset;
  for (int64_t r = 0; r < block.rows; ++r) {
    int64_t t = timeOf(r, s);
    std::fill_n(reset + r * plan.hidden, plan.hidden, 0.0f);
    if (t < 0)
      continue;
    CellStep cell = cellStep(r, t);
    cell.out = reset + r * plan.hidden;
    cells.gruReset(cell);
  }
  int64_t from = 2 * plan.hidden / kPanelColumns * kPanelColumns, stride = plan.hidden + kPanelColumns;
  float *third = own + scratch.third;
  product.run(block.rows, reset, from, third, stride);
  for (int64_t r = 0; r < block.rows; ++r)
    std::copy_n(third + r * stride + 2 * plan.hidden - from, plan.hidden, gatesOf(r) + 2 * plan.hidden);
}

} // namespace dspark
