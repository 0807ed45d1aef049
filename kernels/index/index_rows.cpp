#include "kernels/common/families.h"
#include "kernels/index/rows.h"
#include <vector>

namespace dspark {

std::span<const Kernel> indexKernels() {
  using namespace index_ops;
  static const std::vector<Kernel> rows = [] {
    std::vector<Kernel> all;
    for (auto part : {gatherKernels, scatterKernels, fillKernels, selectKernels, topKKernels, uniqueKernels})
      for (const Kernel &row : part())
        all.push_back(row);
    return all;
  }();
  return rows;
}

} // namespace dspark
