// Native code for the fused steps of a plan.
#pragma once
#include "kernels/common/isa.h"
#include "mlir/IR/BuiltinOps.h"
#include "runtime/base/Status.h"
#include <optional>
#include <vector>

namespace dspark {

struct GeneratedCode {
  std::vector<std::pair<Isa, std::vector<std::byte>>> objects; // one ELF shared object per level
  int kernels = 0;                                             // distinct functions in each
};

/// Compiles every fused step of all functions that code generation can take, for the levels up to `cap`
/// (none: all levels), and gives those steps their symbol and inner-stride pattern. `threads` 0 is one per
/// core.
StatusOr<GeneratedCode> generateCode(mlir::ModuleOp module, std::optional<Isa> cap, int threads);

} // namespace dspark
