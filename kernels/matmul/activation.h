// The activations that contractions apply to their results before they store them.
#pragma once
#include <cstdint>
#include <string_view>

namespace dspark {

/// Values of the `activation` attribute, in the order of kActivationNames.
enum class Activation : uint8_t {
  None,
  Relu,
  Clip,        // alpha, beta: bounds
  HardSwish,   // x * clip(alpha * x + beta, 0, 1)
  HardSigmoid, // clip(alpha * x + beta, 0, 1)
  LeakyRelu,   // alpha: slope below zero
  Sigmoid,
  Silu,
  Tanh,
  Gelu,
  GeluTanh,
};
inline constexpr std::string_view kActivationNames[] = {
    "",        "relu", "clip", "hard_swish", "hard_sigmoid", "leaky_relu",
    "sigmoid", "silu", "tanh", "gelu",       "gelu_tanh"};

/// An activation with its parameters.
struct SumEpilogue {
  Activation activation = Activation::None;
  float alpha = 0, beta = 0;
};

} // namespace dspark
