// The collapsed loops of a fused region. Up to 24 operands' strides do not fit into a kernel's state, but all
// operands are dense, so that one bit per dim, whether the operand has it, says as much.
#pragma once
#include "kernels/common/broadcast.h"
#include "kernels/fused/program.h"

namespace dspark {

struct FusedLoops {
  int64_t total;
  int32_t rank; // at least 1
  int64_t dims[kMaxRank];
  uint16_t present[kMaxFusedOperands]; // bit i: the operand has dim i; else it is broadcast along it

  /// Loops over the call's inputs and then its outputs.
  void collapse(const KernelCall &call);
  /// Element strides of one operand along dims.
  void strides(int operand, int64_t *out) const;
  /// 0 or 1.
  int innerStride(int operand) const { return present[operand] >> (rank - 1) & 1; }
};

/// Rows that interpret the program, and rows that call generated code.
std::span<const Kernel> fusedInterpreterRows();
std::span<const Kernel> fusedGeneratedRows();

} // namespace dspark
