// The activations of a contraction's epilogue on sums in registers. Included once per ISA level.
#pragma once
#include "kernels/matmul/activation.h"
#include "kernels/matmul/sums.h"

namespace dspark {
namespace {

DSPARK_SIMD vf clamp(vf v, vf low, vf high) {
  v = select(low > v, low, v);
  return select(high < v, high, v);
}

// Functions that would take too much code in every register tile.
__attribute__((noinline)) void activateSlowly(float *values, int count, Activation activation) {
  for (int i = 0; i < count; i += kLanes) {
    vf v = load(values + i);
    switch (activation) {
    case Activation::Sigmoid:
      v = sigmoid(v);
      break;
    case Activation::Silu:
      v = v * sigmoid(v);
      break;
    case Activation::Tanh:
      v = simd::tanh(v);
      break;
    case Activation::Gelu:
      v = gelu(v);
      break;
    case Activation::GeluTanh:
      v = geluTanh(v);
      break;
    default:
      break;
    }
    store(values + i, v);
  }
}

template <int R, int V> DSPARK_SIMD void activate(vf (&sum)[R][V], const SumEpilogue &epilogue) {
  vf alpha = splat(epilogue.alpha), beta = splat(epilogue.beta), zero = splat(0), one = splat(1);
  switch (epilogue.activation) {
  case Activation::None:
    return;
  case Activation::Relu:
    return each(sum, [&](vf x) { return select(zero > x, zero, x); });
  case Activation::Clip:
    return each(sum, [&](vf x) { return clamp(x, alpha, beta); });
  case Activation::HardSwish:
    return each(sum, [&](vf x) { return x * clamp(fma(alpha, x, beta), zero, one); });
  case Activation::HardSigmoid:
    return each(sum, [&](vf x) { return clamp(fma(alpha, x, beta), zero, one); });
  case Activation::LeakyRelu:
    return each(sum, [&](vf x) { return select(x < zero, x * alpha, x); });
  default:
    float values[R * V * kLanes];
    unroll<R * V>(DSPARK_LAMBDA { store(values + i * kLanes, sum[i / V][i % V]); });
    activateSlowly(values, R * V * kLanes, epilogue.activation);
    unroll<R * V>(DSPARK_LAMBDA { sum[i / V][i % V] = load(values + i * kLanes); });
  }
}

} // namespace
} // namespace dspark
