// Tensors of f32, f16 or bf16 in a folder of .safetensors files.
#pragma once
#include "frontends/checkpoint/DecoderWeights.h"
#include "frontends/checkpoint/SafeTensors.h"

namespace dspark::checkpoint {

/// The rows of [n][k] where they lie. Errors: those of findTensor.
StatusOr<Matrix> floatMatrix(const std::shared_ptr<const SafeTensorsFolder> &folder, const std::string &name,
                             int64_t n, int64_t k);
/// Errors: those of findTensor.
StatusOr<std::vector<float>> floatVector(const SafeTensorsFolder &folder, const std::string &name, int64_t n);

} // namespace dspark::checkpoint
