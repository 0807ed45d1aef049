// The activation functions of recurrent cells. Plain data: the files of the ISA levels include it.
#pragma once
#include <cstdint>

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

/// A function with its parameters.
struct CellFunction {
  RnnFunction kind;
  float alpha, beta;
};

} // namespace dspark
