// A fused region: a straight-line program over f32 values, evaluated at every element of the broadcast shape
// of its inputs (its full shape). It is carried by the attributes of a "fused" step, run block by block by
// the catalogue kernel, or by generated code that was compiled from the same program.
//
// Attributes of a "fused" step
//   program   ints, kFusedStride per instruction: category, kind, a, b, c
//   params    floats, 2 per instruction: alpha, beta (the constant's value, clip's bounds, a unary's
//             parameters)
//   results   ints, one value number per output
//   row_axes  the trailing axes of the full shape that make a row; 0, the default, if nothing is reduced
//   shapes    ints, a FusedShape per output; absent where all outputs have the full shape
//   kept      ints, ascending value numbers of instructions whose rows are stored by the pass that makes them
//             (passes.h) and read by later ones, which compute other values again
//   inner     ints, per operand (inputs, then outputs) 0 or 1: the element stride along the innermost
//             collapsed dim that generated code assumes. Absent when there is no generated code
// Value numbers: the inputs are 0 .. n-1, instruction i makes n+i. Operands refer to smaller numbers only.
// Comparisons make 1.0 or 0.0, and select tests for != 0. Inputs are f32 (or bool, read as 1.0 or 0.0);
// outputs are f32. A reduction folds the row of each element into one number, which is the value of the whole
// row.
//
// The order of a fold is fixed: element i of a row belongs to lane i % W with W = fusedLanes(level). Lanes
// fold kFusedChunk elements from the identity on, in order; these are joined to the lane's total, in order;
// last the totals are joined as a tree, halves first. So no result depends on tiles, tails or threads.
#pragma once
#include "kernels/common/isa.h"
#include "kernels/common/shape.h"
#include <optional>
#include <span>

namespace dspark {

inline constexpr int kFusedStride = 5;
inline constexpr int kMaxFusedInstructions = 256;
inline constexpr int kMaxFusedOperands = 24; // inputs and outputs
inline constexpr int kMaxFusedValues = kMaxFusedInstructions + kMaxFusedOperands;
inline constexpr int kMaxFusedSlots = 120; // intermediate values that are alive at once
inline constexpr int kMaxFusedDepth = 8;   // reductions that need each other
inline constexpr int kMaxFusedKept = 16;
/// 2048 elements are 128 terms per lane at AVX2, and a row of a million adds 512 chunks: the error of a sum
/// stays near that of pairwise summation.
inline constexpr int64_t kFusedChunk = 2048;
inline constexpr int kMaxFusedLanes = 32;
/// Two vectors, so that the latency of one fold hides behind the other.
inline constexpr int fusedLanes(Isa isa) { return 8 << int(isa); }

enum class FusedCategory : uint8_t { Unary, Binary, Compare, Select, Clip, Constant, Reduce };
enum class FusedReduce : uint8_t { Sum, Mean, Max, Min }; // NaN wins in Max and Min
inline constexpr int kFusedReduceCount = 4;

/// An output's dims: those of the full shape, the same with row axes of 1, or without the row axes.
enum class FusedShape : uint8_t { Full, Kept, Dropped };

struct FusedInstruction {
  FusedCategory category;
  uint8_t kind; // UnaryKind, BinaryKind, CompareKind or FusedReduce; 0 otherwise
  int a, b, c;  // value numbers; unused ones are 0
  float alpha, beta;
};

/// The parts of a program that say what is computed from what, in the caller's memory.
struct FusedBody {
  int inputs;
  std::span<const FusedInstruction> code;
  std::span<const int> results;
  std::span<const FusedShape> shapes; // per result
  std::span<const int> kept;

  int values() const { return inputs + int(code.size()); }
  bool isReduced(size_t result) const { return shapes[result] != FusedShape::Full; }
};

struct FusedProgram {
  int inputs = 0;
  std::vector<FusedInstruction> code;
  std::vector<int> results;
  int rowAxes = 0;
  std::vector<FusedShape> shapes; // per result
  std::vector<int> kept;

  /// Per instruction, the slot of an interpreter that holds its value until its last use.
  std::vector<uint8_t> slots;
  int slotCount = 0;

  /// Reads and checks the attributes; nullopt with `error` set if they break a rule above.
  static std::optional<FusedProgram> parse(Attrs attrs, size_t inputs, size_t outputs, std::string &error);
  /// How many of a, b, c an instruction of this category uses.
  static int operandCount(FusedCategory category);

  FusedBody body() const { return {inputs, code, results, shapes, kept}; }
  /// Bit k: input k reaches a reduced result other than through a reduction, so that its row axes must be 1.
  uint32_t uniformInputs() const;
};

/// What generated code exports per region. Walks n0 rows of n1 elements; `strides` are the row strides in
/// elements, per operand, inputs first. Inner strides are those of the `inner` attribute. Behind the operands
/// lies the address of the step's `params`, so that regions which differ in constants only share their code.
/// With row_axes, n1 is a whole row, and an address of room for the kept rows follows: row k at k times
/// fusedKeptStride(n1) elements.
using FusedFn = void (*)(void *const *operands, int64_t n0, int64_t n1, const int64_t *strides);

inline constexpr int64_t fusedKeptStride(int64_t n1) {
  return (n1 + kMaxFusedLanes - 1) / kMaxFusedLanes * kMaxFusedLanes;
}

} // namespace dspark
