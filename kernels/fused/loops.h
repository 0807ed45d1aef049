// The collapsed loops of a fused region. Up to 24 operands' strides do not fit into a kernel's state, but all
// operands are dense, so that one bit per dim, whether the operand has it, says as much.
#pragma once
#include "kernels/common/broadcast.h"
#include "kernels/fused/program.h"

namespace dspark {

struct FusedLoops {
  int64_t total;   // elements of the full shape
  int32_t rank;    // at least 1
  int32_t rowRank; // how many of the dims make a row: at least 1 if anything is reduced, else 0
  int64_t dims[kMaxRank];
  uint16_t present[kMaxFusedOperands]; // bit i: the operand has dim i; else it is broadcast along it

  /// Loops over the call's inputs and then its outputs.
  void collapse(const KernelCall &call);
  /// Element strides of one operand along dims.
  void strides(int operand, int64_t *out) const;
  /// 0 or 1.
  int innerStride(int operand) const { return present[operand] >> (rank - 1) & 1; }
  /// Elements of a row, and rows.
  int64_t rowLength() const;
  int64_t rows() const;
  /// Whether the operand has one element per row.
  bool isUniform(int operand) const { return present[operand] >> (rank - rowRank) == 0; }

private:
  void append(int64_t size, uint32_t operands, bool joins);
};

/// Rows that interpret the program, and rows that call generated code.
std::span<const Kernel> fusedInterpreterRows();
std::span<const Kernel> fusedRowInterpreterRows(); // programs with reductions
std::span<const Kernel> fusedGeneratedRows();

/// Whether the call's program reduces rows.
inline bool reducesRows(const KernelCall &call) { return call.attrs.i("row_axes", 0) > 0; }

/// How rows are cut into tiles: so many rows each.
inline int64_t rowsPerTile(int64_t rows, int64_t length) {
  // Never more than a million tiles.
  int64_t least = (rows >> 20) + 1;
  return std::max(least, kElementwiseTile / std::max<int64_t>(1, length));
}

} // namespace dspark
