// --precision, --max-error, --calib, --sensitive and --explain: a compile whose regions get the precision
// that a bound on the error allows.
#pragma once
#include "compiler/Pipeline/Compile.h"
#include "tools/dspark-compile/OutputError.h"
#include <string>
#include <vector>

namespace dspark {

struct PrecisionOptions {
  std::string precision = "auto";     // auto, f32, int8_static, int8, int4 or bf16
  ErrorBound bound;                   // 0: no loss
  std::vector<std::string> files;     // of --calib
  std::vector<std::string> dims;      // NAME=N, of random inputs
  std::vector<std::string> sensitive; // nodes that stay f32
  std::string explain;                // "", "table" or "json"

  bool isAsked() const { return precision != "auto" || bound.most > 0 || !explain.empty(); }
};

/// Compiles to options.output; searches and compiles again with what was found. exitCode 3, and no plan, when
/// the bound cannot be met. What --explain asks for is printed on standard output.
CompileReport compileWithPrecision(CompileOptions options, const PrecisionOptions &precision);

} // namespace dspark
