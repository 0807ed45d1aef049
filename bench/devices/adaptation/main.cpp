// How a running plan adapts: scripted changes of the machine, noise, a long trace of mixed changes, the cost
// of adapting, and what the next process knows. bench/adaptation makes the plan and says what is printed.
//
//   bench_adaptation PLAN NAME=LIBRARY.so,CONFIG SYMBOL=USUAL,SMALL,LARGE [SEEDS]
//
// Adapting is weighed against runs of the large size: it takes a few microseconds, whatever the size.
#include "bench/devices/adaptation/Experiments.h"
#include "tools/dspark-rt/OptionTexts.h"
#include <iostream>

using namespace dspark;
using namespace dspark::bench;

int main(int argc, char **argv) {
  std::map<std::string, std::vector<int64_t>> dims;
  Status status = argc > 3 ? parseDimSizes({argv[3]}, dims, "SYMBOL") : invalidArgument("too few arguments");
  if (!status.isOk() || dims.begin()->second.size() != 3) {
    std::cerr << "usage: bench_adaptation PLAN NAME=LIBRARY.so,CONFIG SYMBOL=USUAL,SMALL,LARGE [SEEDS]\n";
    return 1;
  }
  MachineOptions options;
  options.plan = argv[1];
  options.device = argv[2];
  for (int64_t size : dims.begin()->second)
    options.sizes.push_back({{dims.begin()->first, size}});
  StatusOr<bool> isGood = runExperiments(options, argc > 4 ? std::max(1, std::atoi(argv[4])) : 5);
  if (!isGood.isOk())
    std::cerr << "bench_adaptation: " << isGood.status().message() << "\n";
  return !isGood.isOk() ? 1 : *isGood ? 0 : 3;
}
