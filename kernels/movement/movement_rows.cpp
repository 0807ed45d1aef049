#include "kernels/common/families.h"
#include "kernels/movement/rows.h"
#include <vector>

namespace dspark {

std::span<const Kernel> movementKernels() {
  using namespace movement;
  static const std::vector<Kernel> rows = [] {
    std::vector<Kernel> all;
    for (auto part : {copyKernels, joinKernels, sliceKernels, padKernels, viewKernels, arrangeKernels})
      for (const Kernel &row : part())
        all.push_back(row);
    return all;
  }();
  return rows;
}

} // namespace dspark
