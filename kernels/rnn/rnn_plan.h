// Sizes and options of one recurrent call, the same for lstm, gru and rnn.
//
// Operands: x, w, r, b?, sequence_lens?, initial_h?, initial_c?, p?. W and R hold one [gates * hidden, input
// or hidden] matrix per direction, gates in ONNX's order (lstm i o f c; gru z r h).
#pragma once
#include "kernels/common/kernel.h"
#include "kernels/rnn/activations.h"

namespace dspark {

struct RnnPlan {
  int gates; // 4: lstm, 3: gru, 1: rnn
  int64_t steps, batch, input, hidden, directions;
  bool isBatchFirst, isReverse, isPacked; // isReverse: of the first direction
  bool coupled;                           // lstm's input_forget
  bool linearBeforeReset;                 // gru
  float clip;                             // infinity without one
  RnnActivations activations;

  void read(const KernelCall &call, int gates);
  int64_t width() const { return gates * hidden; }
  int functionsPerCell() const { return gates == 4 ? 3 : gates == 3 ? 2 : 1; }
  const CellFunction *functions(int64_t direction) const {
    return activations.functions + direction * functionsPerCell();
  }
  bool runsBackwards(int64_t direction) const { return isReverse || direction == 1; }
  /// The x row of batch b at time t, times `input` elements.
  int64_t xRow(int64_t t, int64_t b) const { return isBatchFirst ? b * steps + t : t * batch + b; }
  /// The y row of that time, times `hidden`.
  int64_t yRow(int64_t t, int64_t d, int64_t b) const {
    return isBatchFirst ? (b * steps + t) * directions + d : (t * directions + d) * batch + b;
  }
  /// The row of an initial or final state, times `hidden`.
  int64_t stateRow(int64_t d, int64_t b) const { return isBatchFirst ? b * directions + d : d * batch + b; }
  /// Steps that batch b takes.
  int64_t length(const KernelCall &call, int64_t b) const;
  /// f32 biases [gates * hidden] that are added before a step: all of them, but for gru's recurrent one of
  /// the third gate when the reset gate multiplies it.
  void addBiases(const KernelCall &call, int64_t direction, float *bias) const;
  double flops() const;
};

} // namespace dspark
