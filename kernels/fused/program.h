// A fused elementwise region: a straight-line program over f32 values, evaluated at every element of the
// broadcast shape of its inputs. It is carried by the attributes of a "fused" step, run block by block by the
// catalogue kernel, or by generated code that was compiled from the same program.
//
// Attributes of a "fused" step
//   program  ints, kFusedStride per instruction: category, kind, a, b, c
//   params   floats, 2 per instruction: alpha, beta (the constant's value, clip's bounds, a unary's
//   parameters) results  ints, one value number per output inner    ints, per operand (inputs, then outputs)
//   0 or 1: the element stride along the innermost collapsed dim that
//            generated code assumes. Absent when there is no generated code
// Value numbers: the inputs are 0 .. n-1, instruction i makes n+i. Operands refer to smaller numbers only.
// Comparisons make 1.0 or 0.0, and select tests for != 0. Inputs are f32 (or bool, read as 1.0 or 0.0);
// outputs are f32 and have the full broadcast shape.
#pragma once
#include "kernels/common/shape.h"
#include <optional>

namespace dspark {

inline constexpr int kFusedStride = 5;
inline constexpr int kMaxFusedInstructions = 256;
inline constexpr int kMaxFusedOperands = 24; // inputs and outputs
inline constexpr int kMaxFusedSlots = 120;   // intermediate values that are alive at once

enum class FusedCategory : uint8_t { Unary, Binary, Compare, Select, Clip, Constant };

struct FusedInstruction {
  FusedCategory category;
  uint8_t kind; // UnaryKind, BinaryKind or CompareKind; 0 otherwise
  int a, b, c;  // value numbers; unused ones are 0
  float alpha, beta;
};

struct FusedProgram {
  int inputs = 0;
  std::vector<FusedInstruction> code;
  std::vector<int> results;

  /// Per instruction, the slot of an interpreter that holds its value until its last use.
  std::vector<uint8_t> slots;
  int slotCount = 0;

  /// Reads and checks the attributes; nullopt with `error` set if they break a rule above.
  static std::optional<FusedProgram> parse(Attrs attrs, size_t inputs, size_t outputs, std::string &error);
  /// How many of a, b, c an instruction of this category uses.
  static int operandCount(FusedCategory category);
};

/// What generated code exports per region. Walks n0 rows of n1 elements; `strides` are the row strides in
/// elements, per operand, inputs first. Inner strides are those of the `inner` attribute. Behind the operands
/// lies the address of the step's `params`, so that regions which differ in constants only share their code.
using FusedFn = void (*)(void *const *operands, int64_t n0, int64_t n1, const int64_t *strides);

} // namespace dspark
