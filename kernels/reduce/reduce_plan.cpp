#include "kernels/reduce/reduce_plan.h"
#include "kernels/common/operand.h"

namespace dspark::reduce_ops {

uint32_t reducedAxes(const KernelCall &call) {
  const TensorView &x = call.in[0];
  uint32_t flags = 0, all = (uint32_t(1) << x.rank) - 1;
  auto add = [&](int64_t axis) {
    axis += axis < 0 ? x.rank : 0;
    if (axis >= 0 && axis < x.rank)
      flags |= uint32_t(1) << axis;
  };
  int64_t count = 0;
  if (call.has(1)) {
    count = call.in[1].elements();
    for (int64_t k = 0; k < count; ++k)
      add(intAt(call.in[1], k));
  } else {
    for (int64_t axis : call.attrs.ints("axes"))
      add(axis);
    count = int64_t(call.attrs.ints("axes").size());
  }
  return count == 0 && call.attrs.i("noop_with_empty_axes", 0) == 0 ? all : flags;
}

ReducePlan planReduce(const TensorView &x, uint32_t flags) {
  ReducePlan p;
  int64_t stride = 1;
  bool previousReduced = false, any = false;
  // From the last axis to the first; the lists are turned round at the end.
  for (int i = x.rank - 1; i >= 0; --i) {
    bool isReduced = flags >> i & 1;
    int64_t size = x.dims[i];
    (isReduced ? p.folded : p.outputs) *= size;
    if (size != 1) {
      int32_t &count = isReduced ? p.reduced : p.kept;
      int64_t *sizes = isReduced ? p.reducedSize : p.keptSize;
      if (any && isReduced == previousReduced) {
        sizes[count - 1] *= size;
      } else {
        (isReduced ? p.reducedStride : p.keptStride)[count] = stride;
        sizes[count++] = size;
      }
      if (!any)
        p.isRows = isReduced;
      any = true;
      previousReduced = isReduced;
    }
    stride *= size;
  }
  auto reverse = [](int32_t count, int64_t *list) {
    for (int i = 0; i < count / 2; ++i) {
      int64_t other = list[count - 1 - i];
      list[count - 1 - i] = list[i];
      list[i] = other;
    }
  };
  reverse(p.kept, p.keptSize);
  reverse(p.kept, p.keptStride);
  reverse(p.reduced, p.reducedSize);
  reverse(p.reduced, p.reducedStride);
  if (p.reduced == 0) {
    // Nothing to fold: each result is one element; lanes read them side by side.
    p.reduced = 1;
    p.reducedSize[0] = 1;
    p.reducedStride[0] = 0;
    p.isRows = p.kept == 0;
  }
  p.sliceLength = p.folded;
  return p;
}

} // namespace dspark::reduce_ops
