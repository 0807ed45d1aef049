#include "kernels/common/families.h"
#include "kernels/reduce/rows.h"
#include <vector>

namespace dspark {

std::span<const Kernel> reduceKernels() {
  using namespace reduce_ops;
  static const std::vector<Kernel> rows = [] {
    std::vector<Kernel> all;
    for (auto part : {reduceKernelRows, argReduceRows, cumulativeRows})
      for (const Kernel &row : part())
        all.push_back(row);
    return all;
  }();
  return rows;
}

} // namespace dspark
