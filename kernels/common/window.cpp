#include "kernels/common/window.h"
#include <algorithm>

namespace dspark {
namespace {

constexpr int64_t kLimit = INT32_MAX;

// Copies an optional list attribute; false if its length or an entry is out of bounds.
bool readList(const Attrs &attrs, std::string_view name, int count, int64_t least, int64_t *out) {
  const Attr *attr = attrs.find(name);
  if (!attr)
    return true;
  if (int64_t(attr->ints.size()) != count)
    return false;
  for (int i = 0; i < count; ++i) {
    if (attr->ints[i] < least || attr->ints[i] > kLimit)
      return false;
    out[i] = attr->ints[i];
  }
  return true;
}

} // namespace

const char *WindowAttrs::read(const Attrs &attrs, int spatialRank) {
  if (spatialRank < 1 || spatialRank > kMaxSpatial)
    return "expected 1 to 3 spatial dims";
  rank = spatialRank;
  if (!readList(attrs, "kernel_shape", rank, 1, kernel))
    return "kernel_shape: expected one positive int32 per spatial dim";
  if (!readList(attrs, "strides", rank, 1, stride))
    return "strides: expected one positive int32 per spatial dim";
  if (!readList(attrs, "dilations", rank, 1, dilation))
    return "dilations: expected one positive int32 per spatial dim";
  std::string_view mode = attrs.s("auto_pad", "NOTSET");
  if (mode == "NOTSET")
    autoPad = AutoPad::NotSet;
  else if (mode == "VALID")
    autoPad = AutoPad::Valid;
  else if (mode == "SAME_UPPER")
    autoPad = AutoPad::SameUpper;
  else if (mode == "SAME_LOWER")
    autoPad = AutoPad::SameLower;
  else
    return "auto_pad: expected NOTSET, VALID, SAME_UPPER or SAME_LOWER";
  int64_t pads[2 * kMaxSpatial] = {};
  if (!readList(attrs, "pads", 2 * rank, 0, pads))
    return "pads: expected two int32 >= 0 per spatial dim";
  for (int i = 0; i < rank && autoPad == AutoPad::NotSet; ++i) {
    padBegin[i] = pads[i];
    padEnd[i] = pads[rank + i];
  }
  for (int i = 0; i < rank; ++i)
    if (extent(i) > kLimit)
      return "kernel_shape and dilations: expected a window of at most 2^31 elements";
  ceil = attrs.i("ceil_mode", 0) != 0;
  return nullptr;
}

Dim WindowAttrs::output(int axis, Dim in) const {
  Dim stride(this->stride[axis]);
  if (autoPad == AutoPad::SameUpper || autoPad == AutoPad::SameLower)
    return ceilDiv(in, stride);
  Dim room = in + Dim(padBegin[axis] + padEnd[axis] - extent(axis));
  if (!ceil)
    return floorDiv(room, stride) + Dim(1);
  Dim windows = ceilDiv(room, stride) + Dim(1);
  // A last window that would start in the end padding does not count.
  if (padEnd[axis] <= extent(axis) - this->stride[axis])
    return windows;
  return min(windows, ceilDiv(in + Dim(padBegin[axis]), stride));
}

void WindowAttrs::resolvePads(const int64_t *in) {
  if (autoPad == AutoPad::SameUpper || autoPad == AutoPad::SameLower)
    for (int i = 0; i < rank; ++i) {
      int64_t out = (in[i] + stride[i] - 1) / stride[i];
      int64_t total = std::max<int64_t>((out - 1) * stride[i] + extent(i) - in[i], 0);
      padBegin[i] = autoPad == AutoPad::SameUpper ? total / 2 : total - total / 2;
      padEnd[i] = total - padBegin[i];
    }
  autoPad = AutoPad::NotSet;
}

bool readChannelsLast(const Attrs &attrs, const char *&error) {
  std::string_view layout = attrs.s("layout", "nchw");
  if (layout != "nchw" && layout != "nhwc")
    error = "layout: expected nchw or nhwc";
  return layout == "nhwc";
}

} // namespace dspark
