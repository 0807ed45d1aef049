// Native code for fused regions (kernels/fused/program.h): linalg -> vector -> LLVM -> one ELF
// shared object per ISA level, compiled and linked in this process. docs/codegen.md describes the pipeline
// and its costs.
#pragma once
#include "kernels/common/dtype.h"
#include "kernels/common/isa.h"
#include "kernels/fused/program.h"
#include "runtime/base/Status.h"
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace dspark {

/// One region to compile. Equal specs have equal symbols and share their code.
struct FusedKernelSpec {
  FusedProgram program;
  std::vector<int> inner;   // per operand, inputs then outputs: innermost stride, 0 or 1; outputs have 1,
                            // reduced ones 0
  std::vector<DType> types; // per operand: F32, or Bool for inputs

  /// The name of the exported function (a FusedFn): a hash of everything the code depends on but the ISA
  /// level. The values of constants are not part of it: the code reads them from the step's `params`.
  std::string symbol() const;
};

/// Whether every instruction has generated code as accurate as the interpreter's. The others (general pow,
/// mod, bit operations ...) keep the catalogue kernel.
bool canGenerate(const FusedProgram &program);

struct CodegenOptions {
  int threads = 0;           // workers; 0 means one per core
  bool useCache = true;      // false: neither read nor write cached objects
  std::string cacheDir = {}; // where objects are kept; empty means defaultCodegenCache()
};

/// DSPARK_CACHE, else $XDG_CACHE_HOME/dspark/codegen, else ~/.cache/dspark/codegen; empty if none of them is
/// set.
std::string defaultCodegenCache();

struct FusedLibrary {
  std::vector<std::byte> elf; // a shared object that needs no other and exports the specs' symbols only
  int compiled = 0;           // kernels that were compiled, the rest came from the cache
};

/// Compiles all specs for one level. InvalidArgument names the first spec that breaks a rule above or that
/// canGenerate() refuses. A result element depends only on its own operands' values, and those of its row
/// where that is reduced: not on its position, tile or neighbours. An output may be the same memory as an
/// input that has the same strides.
StatusOr<FusedLibrary> compileFused(std::span<const FusedKernelSpec> specs, Isa level,
                                    const CodegenOptions &options = {});

} // namespace dspark
