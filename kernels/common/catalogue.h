// The catalogue: every operator the runtime can execute, with its shape function and the facts that the
// compiler may use. It holds no kernel code; kernels are rows of their own (kernel.h) that name the operator.
#pragma once
#include "kernels/common/shape.h"

namespace dspark {

struct OpEntry {
  const char *name;
  InferFn infer;
  /// Bit k set: the result may overwrite operand k's buffer when that operand dies here and has the same byte
  /// size (elementwise operators whose kernels read element i before they write element i).
  uint32_t inPlace = 0;
  /// The result is operand 0's bytes under another shape: no kernel runs (reshape, squeeze, identity ...).
  bool isView = false;
  /// Operands and results may be strings. All others move or compute numbers, and are never shown any.
  bool takesStrings = false;
  /// What inPlace is for result 0, for result 1.
  uint32_t inPlaceSecond = 0;

  /// Whether result `result` may overwrite operand `operand`.
  bool mayOverwrite(size_t result, size_t operand) const {
    uint32_t mask = result == 0 ? inPlace : result == 1 ? inPlaceSecond : 0;
    return operand < 32 && (mask >> operand & 1) != 0;
  }
};

/// entry.infer(ctx), with strings refused where the operator does not take them. Shape functions are called
/// this way.
InferStatus inferWith(const OpEntry &entry, InferContext &ctx);

/// The entry of that name, or null.
const OpEntry *findOp(std::string_view name);
std::span<const OpEntry> allOps();

} // namespace dspark
