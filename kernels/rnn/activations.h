// The activation attributes of the recurrent operators: per direction a list of functions, each with alpha
// and beta where it has them.
#pragma once
#include "kernels/common/attrs.h"
#include "kernels/rnn/functions.h"

namespace dspark {

struct RnnActivations {
  CellFunction functions[6]; // direction by direction

  /// Reads activations, activation_alpha and activation_beta; without them the defaults of an operator with
  /// `perCell` functions (3: sigmoid, tanh, tanh; 2: sigmoid, tanh; 1: tanh). Null, or what is wrong.
  const char *read(const Attrs &attrs, int perCell, int directions);
};

} // namespace dspark
