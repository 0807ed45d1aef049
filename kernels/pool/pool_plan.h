// Sizes of one pooling call, missing spatial dims as 1, and the kernels' tiles: ranges of output pixels
// (channels last) or of planes (channels first).
#pragma once
#include "kernels/common/kernel.h"
#include "kernels/pool/pool_loops.h"

namespace dspark {

struct PoolPlan {
  PoolKind kind;
  int64_t batch, channels;
  int64_t in[3], out[3];
  int64_t kernel[3], stride[3], dilation[3], padBegin[3], padEnd[3];
  bool isChannelsLast, countsPadding, isColumnMajor;
  int p; // of lp

  void read(const KernelCall &call);
  int64_t inPixels() const { return in[0] * in[1] * in[2]; }
  int64_t outPixels() const { return out[0] * out[1] * out[2]; }
  /// Elements that an average over the window of this output divides by, given those inside the image.
  int64_t divisor(const int64_t (&at)[3], int64_t inside) const;
};

/// The taps of one axis that lie inside the image for output o: input elements first + k * dilation, k in
/// [begin, end).
struct PoolSpan {
  int64_t first, begin, end;
  PoolSpan(const PoolPlan &plan, int axis, int64_t o);
};

} // namespace dspark
