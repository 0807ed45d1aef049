#include "kernels/common/families.h"
#include "kernels/fused/loops.h"
#include <vector>

namespace dspark {

void FusedLoops::collapse(const KernelCall &call) {
  TensorView operands[kMaxFusedOperands];
  std::copy(call.in.begin(), call.in.end(), operands);
  std::copy(call.out.begin(), call.out.end(), operands + call.in.size());
  size_t count = call.in.size() + call.out.size();
  int64_t all[kMaxFusedOperands][kMaxRank];
  rank = collapseLoops(call.out[0], {operands, count}, dims, all);
  total = call.out[0].elements();
  for (size_t k = 0; k < count; ++k) {
    present[k] = 0;
    for (int i = 0; i < rank; ++i)
      present[k] |= uint16_t((all[k][i] != 0) << i);
  }
}

void FusedLoops::strides(int operand, int64_t *out) const {
  int64_t stride = 1;
  for (int i = rank; i-- > 0;) {
    bool has = present[operand] >> i & 1;
    out[i] = has ? stride : 0;
    stride *= has ? dims[i] : 1;
  }
}

std::span<const Kernel> fusedKernels() {
  static const std::vector<Kernel> all = [] {
    std::vector<Kernel> rows;
    for (auto part : {fusedGeneratedRows(), fusedInterpreterRows()})
      rows.insert(rows.end(), part.begin(), part.end());
    return rows;
  }();
  return all;
}

} // namespace dspark
