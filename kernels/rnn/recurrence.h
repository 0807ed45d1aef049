// The steps of a recurrent layer: in each, a block of hidden states is multiplied by R, what the inputs gave
// is added, and the cell is run. The products are the including kernel's; everything else is f32.
#pragma once
#include "kernels/rnn/cell.h"
#include "kernels/rnn/rnn_plan.h"

namespace dspark {

inline constexpr int64_t kBatchBlock = 12; // rows that go through the steps together

/// What a block keeps in a thread's scratch, in floats.
struct RecurrenceScratch {
  int64_t gates, third, hidden, cell, reset;

  RecurrenceScratch() = default;
  RecurrenceScratch(const RnnPlan &plan, int64_t &used);
};

/// The rows of one tile: one direction, at most kBatchBlock rows of the batch.
struct BatchBlock {
  int64_t direction, first, rows;

  BatchBlock(const RnnPlan &plan, uint32_t tile);
  static uint32_t tiles(const RnnPlan &plan);
};

/// The product that steps begin with.
class HiddenProduct {
public:
  /// `rows` rows of `source` [hidden] times columns [from, gates * hidden) of the direction's R, to rows that
  /// are `stride` floats apart; `from` is a multiple of 16.
  virtual void run(int64_t rows, const float *source, int64_t from, float *to, int64_t stride) = 0;

protected:
  ~HiddenProduct() = default;
};

class Recurrence {
public:
  /// `projected` is [directions][steps * batch][gates * hidden], in the order of x's rows: the inputs'
  /// products with RnnPlan::addBiases. `own` is a thread's scratch.
  Recurrence(const KernelCall &call, const RnnPlan &plan, const RecurrenceScratch &scratch,
             const CellOps &cells, HiddenProduct &product, const float *projected, float *own,
             const BatchBlock &block)
      : call(call), plan(plan), scratch(scratch), cells(cells), product(product), projected(projected),
        own(own), block(block) {}

  /// Writes the block's part of y, y_h and y_c, as far as they are wanted.
  void run();

private:
  void start(size_t operand, float *to);
  void finish(size_t result, const float *from);
  float *gatesOf(int64_t r) { return own + scratch.gates + r * plan.width(); }
  CellStep cellStep(int64_t r, int64_t t);
  int64_t timeOf(int64_t r, int64_t s);
  void step(int64_t s);
  void resetGates(int64_t s);

  const KernelCall &call;
  const RnnPlan &plan;
  const RecurrenceScratch &scratch;
  const CellOps &cells;
  HiddenProduct &product;
  const float *projected;
  float *own;
  const BatchBlock &block;
};

} // namespace dspark
