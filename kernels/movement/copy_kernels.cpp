// Operators that are one strided copy whose strides follow from dims and attributes: prepare() plans it.
#include "kernels/movement/rows.h"
#include "kernels/movement/strided_copy.h"
#include <algorithm>

namespace dspark::movement {
namespace {

int bitsOf(const KernelCall &call) { return dtypeBits(call.in[0].type); }

// Row-major strides of dims.
void rowMajor(const TensorView &x, int64_t *strides) {
  int64_t stride = 1;
  for (int i = x.rank - 1; i >= 0; --i) {
    strides[i] = stride;
    stride *= x.dims[i];
  }
}

StridedCopy planTranspose(const KernelCall &call) {
  const TensorView &x = call.in[0], &y = call.out[0];
  int64_t from[kMaxRank], to[kMaxRank];
  rowMajor(x, from);
  rowMajor(y, to);
  std::span<const int64_t> perm = call.attrs.ints("perm");
  StridedCopy copy;
  for (int i = 0; i < x.rank; ++i)
    copy.add(y.dims[i], from[perm.empty() ? x.rank - 1 - i : perm[size_t(i)]], to[i]);
  return copy;
}

StridedCopy planExpand(const KernelCall &call) {
  const TensorView &x = call.in[0], &y = call.out[0];
  int64_t from[kMaxRank], to[kMaxRank];
  rowMajor(x, from);
  rowMajor(y, to);
  StridedCopy copy;
  for (int i = 0; i < y.rank; ++i) {
    int k = i - (y.rank - x.rank);
    copy.add(y.dims[i], k < 0 || x.dims[k] != y.dims[i] ? 0 : from[k], to[i]);
  }
  return copy;
}

StridedCopy planTile(const KernelCall &call) {
  const TensorView &x = call.in[0], &y = call.out[0];
  int64_t from[kMaxRank], to[kMaxRank];
  rowMajor(x, from);
  rowMajor(y, to);
  StridedCopy copy;
  for (int i = 0; i < x.rank; ++i) {
    copy.add(x.dims[i] == 0 ? 0 : y.dims[i] / x.dims[i], 0, x.dims[i] * to[i]);
    copy.add(x.dims[i], from[i], to[i]);
  }
  return copy;
}

// The axes of `sizes` (x's elements, row-major) in the order `perm`.
StridedCopy planShuffle(std::span<const int64_t> sizes, std::span<const int> perm) {
  int64_t from[8], to[8], stride = 1;
  for (size_t i = sizes.size(); i-- > 0; stride *= sizes[i])
    from[i] = stride;
  stride = 1;
  for (size_t i = perm.size(); i-- > 0; stride *= sizes[size_t(perm[i])])
    to[i] = stride;
  StridedCopy copy;
  for (size_t i = 0; i < perm.size(); ++i)
    copy.add(sizes[size_t(perm[i])], from[perm[i]], to[i]);
  return copy;
}

StridedCopy planDepthToSpace(const KernelCall &call) {
  const int64_t *d = call.in[0].dims;
  int64_t b = call.attrs.i("blocksize", 1), channels = d[1] / (b * b);
  if (call.attrs.s("mode", "DCR") == "DCR") {
    const int64_t sizes[] = {d[0], b, b, channels, d[2], d[3]};
    const int perm[] = {0, 3, 4, 1, 5, 2};
    return planShuffle(sizes, perm);
  }
  const int64_t sizes[] = {d[0], channels, b, b, d[2], d[3]};
  const int perm[] = {0, 1, 4, 2, 5, 3};
  return planShuffle(sizes, perm);
}

StridedCopy planSpaceToDepth(const KernelCall &call) {
  const int64_t *d = call.in[0].dims;
  int64_t b = call.attrs.i("blocksize", 1);
  const int64_t sizes[] = {d[0], d[1], d[2] / b, b, d[3] / b, b};
  const int depthFirst[] = {0, 3, 5, 1, 2, 4}, columnFirst[] = {0, 1, 3, 5, 2, 4};
  return planShuffle(sizes, call.attrs.s("mode", "DCR") == "DCR" ? depthFirst : columnFirst);
}

template <StridedCopy (*kPlan)(const KernelCall &)> bool accepts(const KernelCall &call) {
  return bitsOf(call) > 0 && kPlan(call).fits;
}

template <StridedCopy (*kPlan)(const KernelCall &)> void prepare(const KernelCall &call, KernelWork &work) {
  StridedCopy copy = kPlan(call);
  work.bytes = double(dtypeBytes(call.out[0].type, call.out[0].elements())) * 2;
  if (bitsOf(call) < 8) {
    work.make<StridedCopy>() = copy;
    return;
  }
  CopyLoop &loop = work.make<CopyLoop>() = CopyLoop(copy, bitsOf(call) / 8);
  work.tiles[0] = loop.tiles();
}

void run(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  if (bitsOf(call) < 8)
    copyPacked(work.get<StridedCopy>(), bitsOf(call), call.in[0].data, 0, call.out[0].data, 0);
  else
    work.get<CopyLoop>().run(call.in[0].data, call.out[0].data, part.begin, part.end);
}

template <StridedCopy (*kPlan)(const KernelCall &)> constexpr Kernel row(const char *op, const char *name) {
  return {op, name, Isa::Baseline, accepts<kPlan>, prepare<kPlan>, run};
}

constexpr Kernel kRows[] = {
    row<planTranspose>("transpose", "transpose_bytes"),
    row<planExpand>("expand", "expand_bytes"),
    row<planTile>("tile", "tile_bytes"),
    row<planDepthToSpace>("depth_to_space", "depth_to_space_bytes"),
    row<planSpaceToDepth>("space_to_depth", "space_to_depth_bytes"),
};

} // namespace

std::span<const Kernel> copyKernels() { return kRows; }

} // namespace dspark::movement
