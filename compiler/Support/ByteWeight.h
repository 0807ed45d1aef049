// Constant weights in 8 bits: derived when the plan is written, a scale per output channel.
#pragma once
#include "compiler/Support/ConstantTensor.h"
#include "dialects/DSpark/OpFactory.h"

namespace dspark {

/// dequantize_linear(w8, scales) along `axis`, with w8 = round(w / scale) in [-127, 127] and scale = max|w| /
/// 127 per index of the axis. `weight` is a constant of f32. Null if it is none.
mlir::Value dequantizedByteWeight(mlir::Value weight, int64_t axis,
                                  const std::shared_ptr<WeightStore> &weights, ir::OpFactory &factory);

} // namespace dspark
