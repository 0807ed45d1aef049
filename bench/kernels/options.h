// What the benchmarks of kernels share: their command line, and the loop over the cases that it chooses.
//
//   bench_NAME [FILTER] [--isa LEVEL] [--seconds S] [--list]
#pragma once
#include "kernels/common/isa.h"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

namespace dspark {

struct BenchOptions {
  std::string filter;     // cases whose name holds it
  Isa isa = machineIsa(); // no kernel above this level
  double seconds;         // per case
  bool isListing = false; // print the cases' names only
};

/// Nothing, after the usage on stderr, where an option is not known.
inline std::optional<BenchOptions> parseBenchOptions(const char *program, double seconds, int argc,
                                                     char **argv) {
  BenchOptions options;
  options.seconds = seconds;
  for (int i = 1; i < argc; ++i) {
    std::string arg = argv[i];
    if (arg == "--isa" && i + 1 < argc && isaFromName(argv[i + 1], options.isa))
      ++i;
    else if (arg == "--seconds" && i + 1 < argc)
      options.seconds = std::atof(argv[++i]);
    else if (arg == "--list")
      options.isListing = true;
    else if (arg.starts_with("-")) {
      std::fprintf(stderr, "usage: %s [FILTER] [--isa baseline|avx2|avx512|amx] [--seconds S] [--list]\n",
                   program);
      return std::nullopt;
    } else
      options.filter = arg;
  }
  options.isa = std::min(options.isa, machineIsa());
  return options;
}

/// measure(case, isa, seconds) tells whether the result was right. The program's exit code: 3 if one was not.
template <typename Cases, typename Name, typename Measure>
int runBench(const BenchOptions &options, const Cases &cases, Name name, Measure measure) {
  bool isRight = true;
  for (const auto &c : cases) {
    if (name(c).find(options.filter) == std::string::npos)
      continue;
    if (options.isListing)
      std::printf("%s\n", name(c).c_str());
    else
      isRight = measure(c, options.isa, options.seconds) && isRight;
  }
  return isRight ? 0 : 3;
}

} // namespace dspark
