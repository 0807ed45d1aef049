// Constants that a model keeps quantised, as f32.
#pragma once
#include "compiler/Support/ConstantTensor.h"

namespace dspark {

/// The recipe of a dequantize_linear whose operands are all constants: (q - zero) * scale with one scale or
/// one per index of an axis; nullopt for anything else.
std::optional<ConstantTensor> dequantizedConstant(mlir::Value value,
                                                  const std::shared_ptr<WeightStore> &weights);

} // namespace dspark
