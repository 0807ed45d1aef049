// Reductions and normalisations that work on rows: the last axes of their operand.
#pragma once
#include "dialects/DSpark/Infer.h"

namespace dspark::ir {

/// How many of x's last axes a reduce, softmax or layer_norm works over, x being its operand 0; 0 if it takes
/// other axes, or is another operation. `axes` is what is known of a reduce's operand 1.
int rowAxes(mlir::Operation *op, const TensorInfo &x, const TensorInfo &axes);

} // namespace dspark::ir
