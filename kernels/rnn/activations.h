// The activation functions of recurrent cells, as ONNX names them: per direction a list of functions, each
// with alpha and beta where it has them.
#pragma once
#include "kernels/common/attrs.h"

namespace dspark {

enum class RnnFunction : uint8_t {
  Sigmoid,
  Tanh,
  Relu,
  Affine,          // alpha * x + beta
  LeakyRelu,       // alpha
  ThresholdedRelu, // alpha
  ScaledTanh,      // alpha * tanh(beta * x)
  HardSigmoid,     // alpha, beta
  Elu,             // alpha
  Softsign,
  Softplus,
};

struct RnnActivations {
  struct Function {
    RnnFunction kind;
    float alpha, beta;
  };
  Function functions[6]; // direction by direction

  /// Reads activations, activation_alpha and activation_beta; without them the defaults of an operator with
  /// `perCell` functions (3: sigmoid, tanh, tanh; 2: sigmoid, tanh; 1: tanh). Null, or what is wrong.
  const char *read(const Attrs &attrs, int perCell, int directions);
};

} // namespace dspark
