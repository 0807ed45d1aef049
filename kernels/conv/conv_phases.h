// The phases of an f32 convolution: operands are rearranged if need be, multiplied, and the result moved back
// if need be. Shared by the general and the depthwise kernel.
#pragma once
#include "kernels/conv/conv_layout.h"

namespace dspark {

struct ConvPhases {
  ConvScratch at;
  bool isDepthwise;
  int8_t product, result; // phase numbers; result is -1 where nothing moves back

  /// Sets phases, tiles of the rearrangements and shared scratch; `tiles` are the product's.
  void plan(const KernelCall &call, const ConvPlan &conv, bool depthwise, uint32_t tiles, KernelWork &work);
  /// True if this part was a rearrangement, which is then done.
  bool runArrangement(const KernelCall &call, const ConvPlan &conv, const KernelWork &work,
                      const KernelPart &part) const;

  const float *x(const KernelCall &call, const KernelPart &part) const {
    return place(call.in[0], at.x, part);
  }
  const float *w(const KernelCall &call, const KernelPart &part) const {
    return place(call.in[1], at.w, part);
  }
  /// Null without one.
  const float *residual(const KernelCall &call, const KernelPart &part) const {
    return call.has(3) ? place(call.in[3], at.residual, part) : nullptr;
  }
  float *y(const KernelCall &call, const KernelPart &part) const { return place(call.out[0], at.y, part); }

private:
  static float *place(const TensorView &operand, int64_t offset, const KernelPart &part) {
    return offset < 0 ? operand.as<float>() : reinterpret_cast<float *>(part.shared) + offset;
  }
};

} // namespace dspark
