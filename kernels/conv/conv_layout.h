// What convolutions do around the product when a plan keeps operands as ONNX has them: channels moved last,
// weights packed, results moved back. All of it goes through scratch that the whole run shares.
#pragma once
#include "kernels/conv/conv_plan.h"

namespace dspark {

/// Where things lie in shared scratch, in floats; -1 where the operand itself is used.
struct ConvScratch {
  int64_t x = -1, w = -1, residual = -1, y = -1, floats = 0;

  /// x, residual and y are rearranged unless channels are last, w unless it is packed; `packedFloats` is w's
  /// packed size.
  void plan(const ConvPlan &conv, bool hasResidual, bool isPacked, int64_t packedFloats);
  bool any() const { return floats > 0; }
};

/// Floats of packed weights: panels of 16 output channels per group, or one row of channels per tap.
int64_t packedWeightFloats(const ConvPlan &conv, bool depthwise);

/// Before the product: tile `tile` of `tiles` of the rearrangements.
void arrangeOperands(const KernelCall &call, const ConvPlan &conv, const ConvScratch &at, bool depthwise,
                     float *shared, uint32_t tile, uint32_t tiles);
/// After it: y's channels back to their place.
void arrangeResult(const KernelCall &call, const ConvPlan &conv, const ConvScratch &at, const float *shared,
                   uint32_t tile, uint32_t tiles);

} // namespace dspark
