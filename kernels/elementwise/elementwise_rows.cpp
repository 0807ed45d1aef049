#include "kernels/common/families.h"
#include "kernels/elementwise/rows.h"
#include <vector>

namespace dspark {

std::span<const Kernel> elementwiseKernels() {
  static const std::vector<Kernel> all = [] {
    std::vector<Kernel> rows;
    for (auto part : {unaryRows(), binaryRows(), compareRows(), selectRows(), clipRows(), castRows()})
      rows.insert(rows.end(), part.begin(), part.end());
    return rows;
  }();
  return all;
}

} // namespace dspark
