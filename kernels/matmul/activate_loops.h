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

DSPARK_SIMD vf activated(const SumEpilogue &epilogue, vf v) {
  vf alpha = splat(epilogue.alpha), beta = splat(epilogue.beta), zero = splat(0), one = splat(1);
  switch (epilogue.activation) {
  case Activation::None:
    return v;
  case Activation::Relu:
    return select(zero > v, zero, v);
  case Activation::Clip:
    return clamp(v, alpha, beta);
  case Activation::HardSwish:
    return v * clamp(fma(alpha, v, beta), zero, one);
  case Activation::HardSigmoid:
    return clamp(fma(alpha, v, beta), zero, one);
  case Activation::LeakyRelu:
    return select(v < zero, v * alpha, v);
  case Activation::Sigmoid:
    return sigmoid(v);
  case Activation::Silu:
    return v * sigmoid(v);
  case Activation::Tanh:
    return simd::tanh(v);
  case Activation::Gelu:
    return gelu(v);
  case Activation::GeluTanh:
    return geluTanh(v);
  }
  return v;
}
// `count` is a multiple of kLanes.
[[maybe_unused]] __attribute__((noinline)) void activateBuffer(float *values, int count,
                                                               const SumEpilogue &epilogue) {
  auto all = [&](const SumEpilogue &chosen) __attribute__((always_inline)) {
#pragma clang loop unroll(disable)
    for (int i = 0; i < count; i += kLanes)
      store(values + i, activated(chosen, load(values + i)));
  };
  switch (epilogue.activation) {
  // Known here, so that the loop has no choice in it: what networks have.
  case Activation::Sigmoid:
    return all({Activation::Sigmoid});
  case Activation::Silu:
    return all({Activation::Silu});
  case Activation::Gelu:
    return all({Activation::Gelu});
  default:
    return all(epilogue);
  }
}

// The frequent and cheap functions act on the registers; the others, which would take too much code in every
// register tile, by way of memory.
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
  default:
    float values[R * V * kLanes];
    unroll<R * V>(DSPARK_LAMBDA { store(values + i * kLanes, sum[i / V][i % V]); });
    activateBuffer(values, R * V * kLanes, epilogue);
    unroll<R * V>(DSPARK_LAMBDA { sum[i / V][i % V] = load(values + i * kLanes); });
  }
}

} // namespace
} // namespace dspark
