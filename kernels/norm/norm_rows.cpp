#include "kernels/common/families.h"
#include "kernels/norm/rows.h"
#include <vector>

namespace dspark {

std::span<const Kernel> normKernels() {
  using namespace norm_ops;
  static const std::vector<Kernel> rows = [] {
    std::vector<Kernel> all;
    for (auto part : {softmaxRows, layerNormRows, channelNormRows, otherNormRows})
      for (const Kernel &row : part())
        all.push_back(row);
    return all;
  }();
  return rows;
}

} // namespace dspark
