// One step of one recurrent cell for one row of the batch, hidden units in vector lanes. Plain data: the
// files of the ISA levels include nothing else.
#pragma once
#include "kernels/common/isa.h"
#include "kernels/rnn/functions.h"
#include <cstdint>

namespace dspark {

struct CellStep {
  int64_t hidden;
  const float *x;         // [gates * hidden] from the input, biases included
  const float *h;         // the same from the hidden state
  const float *resetBias; // gru with linear_before_reset: [hidden] added to h's third gate; else null
  const float *peephole;  // lstm: [3 * hidden] for i, o, f; or null
  const float *previous;  // gru: the hidden state before
  float *cell;            // lstm: the cell state, updated
  float *out;             // the hidden state after; for gruReset, reset * previous
  const CellFunction *functions;
  float clip;
  bool coupled;
};

struct CellOps {
  void (*lstm)(const CellStep &);
  /// gru with linear_before_reset, or with h's third gate already made from gruReset's result.
  void (*gru)(const CellStep &);
  void (*gruReset)(const CellStep &);
  void (*rnn)(const CellStep &);
};

extern const CellOps cellOpsBaseline, cellOpsAvx2, cellOpsAvx512;

inline const CellOps &cellOps(Isa isa) {
  return isa == Isa::Avx512 ? cellOpsAvx512 : isa == Isa::Avx2 ? cellOpsAvx2 : cellOpsBaseline;
}

} // namespace dspark
