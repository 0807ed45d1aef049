#include "kernels/pool/pool_plan.h"
#include "kernels/common/window.h"
#include <algorithm>

namespace dspark {

void PoolPlan::read(const KernelCall &call) {
  const TensorView &x = call.in[0], &y = call.out[0];
  std::string_view name = call.attrs.s("kind", "max");
  kind = name == "max" ? PoolKind::Max : name == "average" ? PoolKind::Average : PoolKind::Lp;
  isChannelsLast = call.attrs.s("layout", "nchw") == "nhwc";
  countsPadding = call.attrs.i("count_include_pad", 0) != 0;
  isColumnMajor = call.attrs.i("storage_order", 0) != 0;
  p = int(call.attrs.i("p", 2));
  int spatial = x.rank - 2, first = kMaxSpatial - spatial, spatialAt = isChannelsLast ? 1 : 2;
  batch = x.dim(0);
  channels = x.dim(isChannelsLast ? x.rank - 1 : 1);
  WindowAttrs window;
  window.read(call.attrs, spatial);
  int64_t sizes[kMaxSpatial];
  for (int i = 0; i < spatial; ++i)
    sizes[i] = x.dim(spatialAt + i);
  window.resolvePads(sizes);
  for (int i = 0; i < kMaxSpatial; ++i) {
    bool has = i >= first;
    in[i] = has ? sizes[i - first] : 1;
    out[i] = has ? y.dim(spatialAt + i - first) : 1;
    kernel[i] = has ? window.kernel[i - first] : 1;
    stride[i] = has ? window.stride[i - first] : 1;
    dilation[i] = has ? window.dilation[i - first] : 1;
    padBegin[i] = has ? window.padBegin[i - first] : 0;
    padEnd[i] = has ? window.padEnd[i - first] : 0;
  }
}

int64_t PoolPlan::divisor(const int64_t (&at)[3], int64_t inside) const {
  if (!countsPadding)
    return std::max<int64_t>(inside, 1);
  // Padding counts, but not what ceil_mode lets a window reach beyond it.
  int64_t count = 1;
  for (int i = 0; i < 3; ++i) {
    int64_t first = at[i] * stride[i] - padBegin[i], room = in[i] + padEnd[i] - first;
    count *= std::clamp<int64_t>((room + dilation[i] - 1) / dilation[i], 0, kernel[i]);
  }
  return std::max<int64_t>(count, 1);
}

PoolSpan::PoolSpan(const PoolPlan &plan, int axis, int64_t o) {
  int64_t d = plan.dilation[axis], taps = plan.kernel[axis];
  first = o * plan.stride[axis] - plan.padBegin[axis];
  begin = first < 0 ? std::min((-first + d - 1) / d, taps) : 0;
  int64_t room = plan.in[axis] - first;
  // Most windows lie inside; a division takes as long as a vector of maxima.
  if (room > (taps - 1) * d)
    end = taps;
  else
    end = room <= 0 ? begin : std::clamp<int64_t>((room + d - 1) / d, begin, taps);
}

} // namespace dspark
