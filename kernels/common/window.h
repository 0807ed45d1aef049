// Sliding windows over spatial dims (convolution, pooling): attributes, output sizes on Dim, and the resolved
// numbers that kernels use. Attribute names and auto_pad values are ONNX's.
#pragma once
#include "kernels/common/shape.h"

namespace dspark {

inline constexpr int kMaxSpatial = 3;

enum class AutoPad : uint8_t { NotSet, Valid, SameUpper, SameLower };

/// Window attributes of `rank` spatial dims with ONNX's defaults filled in. Every number is within int32, so
/// that int64 arithmetic on them and a dim cannot overflow.
struct WindowAttrs {
  int rank = 0;
  int64_t kernel[kMaxSpatial] = {1, 1, 1};
  int64_t stride[kMaxSpatial] = {1, 1, 1};
  int64_t dilation[kMaxSpatial] = {1, 1, 1};
  int64_t padBegin[kMaxSpatial] = {};
  int64_t padEnd[kMaxSpatial] = {};
  AutoPad autoPad = AutoPad::NotSet;
  bool ceil = false;

  /// Reads strides, pads, dilations, auto_pad, ceil_mode, and kernel_shape where present. Null, or what is
  /// wrong.
  const char *read(const Attrs &attrs, int spatialRank);
  /// Input elements from the first to the last tap.
  int64_t extent(int axis) const { return (kernel[axis] - 1) * dilation[axis] + 1; }
  /// Output size of one axis.
  Dim output(int axis, Dim in) const;
  /// Replaces auto_pad by the padding it means for inputs of these sizes.
  void resolvePads(const int64_t *in);
};

/// True for "nhwc", where channels come last; false for "nchw", the default. Anything else sets `error`.
bool readChannelsLast(const Attrs &attrs, const char *&error);

} // namespace dspark
