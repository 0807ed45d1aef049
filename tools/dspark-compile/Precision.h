// --precision, --max-error, --calib and --sensitive: a compile whose regions get the precision that a bound
// on the error allows.
#pragma once
#include "compiler/Pipeline/Compile.h"
#include "tools/dspark-compile/PrecisionSearch.h"
#include <optional>
#include <string>
#include <vector>

namespace dspark {

struct PrecisionOptions {
  std::string precision = "auto";            // auto, f32, int8_static, int8, int4, f16 or bf16
  ErrorBound bound;                          // 0: no loss
  std::vector<std::string> files;            // of --calib
  std::vector<std::string> dims;             // NAME=N, of random inputs
  std::vector<std::string> sensitive;        // nodes that stay f32
  std::map<std::string, std::string> forced; // by the names of a region's nodes: the form that a rule wants
  bool joinsSteps = false;                   // in the plan; steps that are looked at stay single
  bool isExplained = false;                  // search also where nothing may be rounded, for the reasons

  bool isAsked() const { return precision != "auto" || bound.most > 0 || isExplained || !forced.empty(); }
};

/// Compiles to options.output; searches and compiles again with what was found, which becomes `found` if a
/// search was asked for. exitCode 3, and no plan, when the bound cannot be met.
CompileReport compileWithPrecision(CompileOptions options, const PrecisionOptions &precision,
                                   std::optional<PrecisionResult> &found);

} // namespace dspark
