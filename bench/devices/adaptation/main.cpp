// How a running plan adapts: scripted changes of the machine, noise, a long trace of mixed changes, the cost
// of adapting, and what the next process knows. bench/adaptation makes the plan and says what is printed.
//
//   bench_adaptation PLAN NAME=LIBRARY.so,CONFIG SYMBOL=LARGE,SMALL [SEEDS]
#include "bench/devices/adaptation/Experiments.h"
#include <charconv>
#include <iostream>

using namespace dspark;
using namespace dspark::bench;

int main(int argc, char **argv) {
  std::string dims = argc > 3 ? argv[3] : "";
  size_t equals = dims.find('='), comma = dims.find(',', equals);
  if (argc < 4 || comma == dims.npos) {
    std::cerr << "usage: bench_adaptation PLAN NAME=LIBRARY.so,CONFIG SYMBOL=LARGE,SMALL [SEEDS]\n";
    return 1;
  }
  MachineOptions options;
  options.plan = argv[1];
  options.device = argv[2];
  for (const std::string &number : {dims.substr(equals + 1, comma - equals - 1), dims.substr(comma + 1)})
    options.sizes.push_back({{dims.substr(0, equals), std::atoll(number.c_str())}});
  StatusOr<bool> isGood = runExperiments(options, argc > 4 ? std::max(1, std::atoi(argv[4])) : 5);
  if (!isGood.isOk())
    std::cerr << "bench_adaptation: " << isGood.status().message() << "\n";
  return !isGood.isOk() ? 1 : *isGood ? 0 : 3;
}
