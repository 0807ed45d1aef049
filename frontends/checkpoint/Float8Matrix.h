// Weights of 8-bit floats with a scale for the tensor, for each row, or for each block of rows and terms.
// They become bf16 where that is exact, else f32.
#pragma once
#include "frontends/checkpoint/QuantizedTensor.h"

namespace dspark::checkpoint {

StatusOr<Matrix> float8Matrix(const QuantizedTensor &tensor);

} // namespace dspark::checkpoint
