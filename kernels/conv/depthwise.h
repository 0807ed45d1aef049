// Depthwise convolution with channels last: one multiply-add per output, channel and tap, channels in vector
// lanes.
#pragma once
#include "kernels/common/isa.h"
#include "kernels/matmul/activation.h"
#include <cstdint>

namespace dspark {

struct ConvPlan;

/// Pixels [begin, end) of one output row, channels [0, channels) from the pointers given.
struct DepthwiseRow {
  const float *const *lines; // [count] input rows inside the image that the outer taps read, at element 0
  const float *const *w;     // [count] the weights of those taps, [kernel][allChannels]
  int64_t count;
  int64_t kernel, stride, dilation, pad; // of the innermost axis
  int64_t inWidth;                       // pixels
  int64_t begin, end;                    // output pixels
  int64_t channels, allChannels; // allChannels: floats from pixel to pixel of y and from tap to tap of w
  int64_t lineStep;              // the same of the lines
  const float *bias, *residual;  // or null; residual as y
  float *y;
  SumEpilogue epilogue;
  int64_t nextRow; // 0, or floats from y to the row below, computed as well: from lines stride places further
};

/// A whole row's description as far as the convolution's sizes give it.
DepthwiseRow depthwiseRowOf(const ConvPlan &conv);

extern void (*const depthwiseRowBaseline)(const DepthwiseRow &);
extern void (*const depthwiseRowAvx2)(const DepthwiseRow &);
extern void (*const depthwiseRowAvx512)(const DepthwiseRow &);

inline auto depthwiseRow(Isa isa) {
  return isa == Isa::Avx512 ? depthwiseRowAvx512 : isa == Isa::Avx2 ? depthwiseRowAvx2 : depthwiseRowBaseline;
}

/// Whether nextRow may be set, where both rows read lines inside the image only.
bool takesTwoRows(Isa isa, const ConvPlan &conv);

} // namespace dspark
