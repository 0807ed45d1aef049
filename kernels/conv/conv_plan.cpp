#include "kernels/conv/conv_plan.h"
#include "kernels/common/window.h"
#include <algorithm>

namespace dspark {
namespace {

// Padding before the first element of a transposed convolution whose size is given: ONNX splits what is cut
// off evenly, the odd element at the end for SAME_UPPER and at the front otherwise.
void padsFromSizes(const Attrs &attrs, const WindowAttrs &window, ConvPlan &plan, int first) {
  bool isUpper = attrs.s("auto_pad", "NOTSET") == "SAME_UPPER";
  std::span<const int64_t> extra = attrs.ints("output_padding");
  for (int i = 0; i < window.rank; ++i) {
    int64_t natural =
        (plan.in[first + i] - 1) * window.stride[i] + window.extent(i) + (extra.empty() ? 0 : extra[i]);
    int64_t total = std::max<int64_t>(natural - plan.out[first + i], 0);
    plan.pad[first + i] = isUpper ? total / 2 : total - total / 2;
  }
}

} // namespace

void ConvPlan::read(const KernelCall &call, size_t weights, bool transposed) {
  const TensorView &x = call.in[0], &w = call.in[weights], &y = call.out[0];
  isTransposed = transposed;
  isChannelsLast = call.attrs.s("layout", "nchw") == "nhwc";
  int spatial = x.rank - 2, first = kMaxSpatial - spatial, spatialAt = isChannelsLast ? 1 : 2;
  batch = x.dim(0);
  inChannels = x.dim(isChannelsLast ? x.rank - 1 : 1);
  outChannels = y.dim(isChannelsLast ? y.rank - 1 : 1);
  group = call.attrs.i("group", 1);
  inPerGroup = inChannels / group;
  outPerGroup = outChannels / group;

  WindowAttrs window;
  window.read(call.attrs, spatial);
  int64_t sizes[kMaxSpatial];
  for (int i = 0; i < spatial; ++i) {
    window.kernel[i] = w.dim(2 + i);
    sizes[i] = x.dim(spatialAt + i);
  }
  bool isSame = window.autoPad == AutoPad::SameUpper || window.autoPad == AutoPad::SameLower;
  if (!isTransposed)
    window.resolvePads(sizes);
  taps = 1;
  for (int i = 0; i < kMaxSpatial; ++i) {
    bool has = i >= first;
    in[i] = has ? sizes[i - first] : 1;
    out[i] = has ? y.dim(spatialAt + i - first) : 1;
    kernel[i] = has ? window.kernel[i - first] : 1;
    stride[i] = has ? window.stride[i - first] : 1;
    dilation[i] = has ? window.dilation[i - first] : 1;
    pad[i] = has ? window.padBegin[i - first] : 0;
    taps *= kernel[i];
  }
  if (isTransposed && (isSame || !call.attrs.ints("output_shape").empty()))
    padsFromSizes(call.attrs, window, *this, first);
}

} // namespace dspark
