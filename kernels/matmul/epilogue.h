// What contractions do to a result before they store it: bias, residual, activation. Here the checks that
// shape functions share; activation.h has the arithmetic.
#pragma once
#include "kernels/common/shape.h"
#include <initializer_list>

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

/// The `activation` attribute; false if it names none.
bool activationOf(const Attrs &attrs, Activation &activation);

/// The activation attribute is one of kActivationNames.
bool checkEpilogue(InferContext &ctx);
/// The `packed` attribute is one of `layouts`.
bool checkPacked(InferContext &ctx, std::initializer_list<std::string_view> layouts);
/// Operand i is absent or has the result's type and dims; what it knows more of the dims is taken over.
bool checkResidual(InferContext &ctx, size_t i, TensorInfo &result);

} // namespace dspark
