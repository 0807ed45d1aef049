// How Winograd's output transforms end: bias, residual, activation and store of outputs beside each other.
// Included once per ISA level.
#pragma once
#include "kernels/matmul/activate_loops.h"

namespace dspark {
namespace {

/// Where one vector of channels of up to N outputs goes.
struct OutputPixels {
  float *y;
  int64_t pixel;         // floats from one output to the next
  int64_t count;         // of them exist
  int64_t lanes;         // channels; more than a vector's are a whole vector
  const float *residual; // or null; as y
};

DSPARK_SIMD vf readChannels(const float *p, int64_t lanes) {
  return lanes >= kLanes ? load(p) : loadLanes(p, lanes);
}

template <int N>
DSPARK_SIMD void storeOutputs(vf (&y)[1][N], const float *bias, const SumEpilogue &epilogue,
                              const OutputPixels &to) {
  vf added = bias ? readChannels(bias, to.lanes) : splat(0);
  unroll<N>(DSPARK_LAMBDA {
    y[0][i] = y[0][i] + added;
    if (to.residual && i < to.count)
      y[0][i] = y[0][i] + readChannels(to.residual + i * to.pixel, to.lanes);
  });
  activate(y, epilogue);
  unroll<N>(DSPARK_LAMBDA {
    float *at = to.y + i * to.pixel;
    if (i < to.count && to.lanes >= kLanes)
      store(at, y[0][i]);
    else if (i < to.count)
      storeLanes(at, y[0][i], to.lanes);
  });
}

} // namespace
} // namespace dspark
