// The activations of contractions on one number, for the reference kernels.
#pragma once
#include "kernels/matmul/activation.h"
#include <algorithm>
#include <cmath>

namespace dspark {

template <typename T> T activateScalar(Activation activation, T x, T alpha, T beta) {
  auto clamp = [](T v, T low, T high) { return v < low ? low : v > high ? high : v; };
  auto sigmoid = [](T v) { return T(1) / (T(1) + std::exp(-v)); };
  switch (activation) {
  case Activation::None:
    return x;
  case Activation::Relu:
    return x < 0 ? T(0) : x;
  case Activation::Clip:
    return clamp(x, alpha, beta);
  case Activation::HardSwish:
    return x * clamp(alpha * x + beta, 0, 1);
  case Activation::HardSigmoid:
    return clamp(alpha * x + beta, 0, 1);
  case Activation::LeakyRelu:
    return x < 0 ? alpha * x : x;
  case Activation::Sigmoid:
    return sigmoid(x);
  case Activation::Silu:
    return x * sigmoid(x);
  case Activation::Tanh:
    return std::tanh(x);
  case Activation::Gelu:
    return x * T(0.5) * (T(1) + std::erf(x * T(0.70710678118654752440)));
  case Activation::GeluTanh:
    return x * T(0.5) * (T(1) + std::tanh(T(0.79788456080286535588) * (x + T(0.044715) * x * x * x)));
  }
  return x;
}

} // namespace dspark
