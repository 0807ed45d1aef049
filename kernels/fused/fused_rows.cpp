#include "kernels/common/families.h"
#include "kernels/fused/loops.h"
#include <vector>

namespace dspark {
namespace {

/// Dim i, counted in the full shape of `rank` dims, of an operand; 1 where it has no such dim.
int64_t dimOf(const TensorView &view, int rank, int i) {
  int own = i - (rank - view.rank);
  return own < 0 ? 1 : view.dims[own];
}

} // namespace

// Operands are dense, so two neighbouring dims are one loop if every operand has both or neither.
void FusedLoops::append(int64_t size, uint32_t operands, bool joins) {
  uint32_t before = 0;
  for (int k = 0; rank > 0 && k < kMaxFusedOperands; ++k)
    before |= uint32_t(innerStride(k)) << k;
  if (joins && rank > 0 && before == operands) {
    dims[rank - 1] *= size;
    return;
  }
  dims[rank++] = size;
  for (int k = 0; k < kMaxFusedOperands; ++k)
    present[k] |= uint16_t((operands >> k & 1) << (rank - 1));
}

void FusedLoops::collapse(const KernelCall &call) {
  *this = {};
  int fullRank = 0;
  for (const TensorView &x : call.in)
    fullRank = std::max(fullRank, x.rank);
  int firstRow = fullRank - int(call.attrs.i("row_axes", 0)), outer = 0;
  std::span<const int64_t> shapes = call.attrs.ints("shapes");
  total = 1;
  for (int i = 0; i < fullRank; ++i) {
    int64_t size = 1;
    uint32_t operands = 0;
    for (size_t k = 0; k < call.in.size(); ++k)
      if (int64_t dim = dimOf(call.in[k], fullRank, i); dim != 1) {
        size = dim;
        operands |= 1u << k;
      }
    if (i == firstRow)
      outer = rank;
    if (size == 1)
      continue;
    total *= size;
    for (size_t r = 0; r < call.out.size(); ++r)
      if (i < firstRow || shapes.empty() || FusedShape(shapes[r]) == FusedShape::Full)
        operands |= 1u << (call.in.size() + r);
    append(size, operands, i != firstRow && rank > (i < firstRow ? 0 : outer));
  }
  bool hasRows = firstRow < fullRank;
  if (rank == (hasRows ? outer : 0))
    append(1, 0, false);
  rowRank = hasRows ? rank - outer : 0;
}

void FusedLoops::strides(int operand, int64_t *out) const {
  int64_t stride = 1;
  for (int i = rank; i-- > 0;) {
    bool has = present[operand] >> i & 1;
    out[i] = has ? stride : 0;
    stride *= has ? dims[i] : 1;
  }
}

int64_t FusedLoops::rowLength() const {
  int64_t length = 1;
  for (int i = rank - rowRank; i < rank; ++i)
    length *= dims[i];
  return length;
}
int64_t FusedLoops::rows() const {
  int64_t rows = 1;
  for (int i = 0; i < rank - rowRank; ++i)
    rows *= dims[i];
  return rows;
}

std::span<const Kernel> fusedKernels() {
  static const std::vector<Kernel> all = [] {
    std::vector<Kernel> rows;
    for (auto part : {fusedGeneratedRows(), fusedInterpreterRows(), fusedRowInterpreterRows()})
      rows.insert(rows.end(), part.begin(), part.end());
    return rows;
  }();
  return all;
}

} // namespace dspark
