// Matrices of Hugging Face checkpoints in few bits: 8-bit floats with scales, GPTQ, AWQ, and
// compressed-tensors' packed integers. What a file says about roundings of activations (input scales) is not
// used: rows keep their precision, or are quantised as --arithmetic says.
#pragma once
#include "frontends/checkpoint/DecoderWeights.h"
#include "frontends/checkpoint/JsonFields.h"
#include "frontends/checkpoint/SafeTensors.h"

namespace dspark::checkpoint {

struct QuantizationScheme {
  enum class Method { None, Fp8, Gptq, Awq, Compressed };
  Method method = Method::None;
  int bits = 4;
  int64_t group = 0;                         // terms that share a scale; 0: all
  bool isFirstVersion = true;                // GPTQ: stored zeros are one too small
  int64_t blockRows = 128, blockTerms = 128; // of 8-bit floats with a scale per block
};

/// quantization_config. Errors go to the fields' status: Unsupported with the method and those that are
/// known.
QuantizationScheme readQuantizationScheme(const JsonFields &fields);

/// Where a linear layer's tensors are.
struct QuantizedTensor {
  const std::shared_ptr<const SafeTensorsFolder> &folder;
  const QuantizationScheme &scheme;
  std::string name; // in the file, without ".weight"
  int64_t n, k;
};

/// Whether the file has it in few bits; then quantizedMatrix reads it. Errors: a tensor that is missing or
/// has other dims or another type; Unsupported for sizes without a layout.
bool isQuantized(const QuantizedTensor &tensor);
StatusOr<Matrix> quantizedMatrix(const QuantizedTensor &tensor);

/// Endings of the names of tensors that belong to a weight in few bits, ".weight" not among them.
bool isQuantizationPart(std::string_view ending);

/// The tensor `name` with exactly these dims and one of these types.
StatusOr<const SafeTensor *> findTensor(const SafeTensorsFolder &folder, const std::string &name,
                                        std::initializer_list<DType> types, const std::vector<int64_t> &dims);

} // namespace dspark::checkpoint
