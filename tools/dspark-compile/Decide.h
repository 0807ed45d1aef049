// A compile that decides: the precision and the device of every step, under a bound on the error, from
// measured times; and what it says about that.
#pragma once
#include "tools/dspark-compile/Precision.h"
#include <string>
#include <vector>

namespace dspark {

struct DecideOptions {
  PrecisionOptions precision;       // its files and dims are those of devices, too
  std::vector<std::string> devices; // NAME=LIBRARY[,CONFIG]
  int threads = 0;                  // that the plan will run with; 0: one per core
  std::string rules, saveRules;     // files
  std::string explain;              // "", "table", "json", or a page FILE.html
  std::string remarks;              // a YAML file, or ""

  /// Whether anything but precisions is asked for.
  bool asksSteps() const {
    return !explain.empty() || !devices.empty() || !rules.empty() || !saveRules.empty() || !remarks.empty();
  }
  bool isAsked() const { return asksSteps() || precision.isAsked(); }
};

/// Compiles to options.output, searches, and compiles or writes again with what was found. On failure there
/// is no plan. exitCode 3: the bound cannot be met. What --explain asks for is printed on standard output, or
/// written to its file.
CompileReport compileAndDecide(CompileOptions options, const DecideOptions &decide);

} // namespace dspark
