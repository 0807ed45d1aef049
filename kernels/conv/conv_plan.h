// Sizes of one convolution, with missing spatial dims as 1 so that every kernel has three. Worked out once
// per shape.
#pragma once
#include "kernels/common/kernel.h"
#include "kernels/matmul/epilogue.h"

namespace dspark {

struct ConvPlan {
  int64_t batch, inChannels, outChannels;
  int64_t group, inPerGroup, outPerGroup;
  int64_t in[3], out[3];
  int64_t kernel[3], stride[3], dilation[3],
      pad[3]; // pad: before the first element; auto_pad and output_shape resolved
  int64_t taps;
  bool isTransposed, isChannelsLast;

  /// Reads a call's attributes and dims; w is operand `weights`, O, I/g, spatial (transposed: I, O/g,
  /// spatial).
  void read(const KernelCall &call, size_t weights, bool isTransposed);

  int64_t inPixels() const { return in[0] * in[1] * in[2]; }
  int64_t outPixels() const { return out[0] * out[1] * out[2]; }
  bool isDepthwise() const { return inPerGroup == 1 && outPerGroup == 1 && !isTransposed; }
  /// Terms of one output's sum.
  int64_t depth() const { return taps * inPerGroup; }
  double flops() const {
    int64_t pixels = isTransposed ? inPixels() : outPixels();
    return 2.0 * double(batch) * double(pixels) * double(taps) *
           double(isTransposed ? inChannels : outChannels) * double(isTransposed ? outPerGroup : inPerGroup);
  }
};

} // namespace dspark
