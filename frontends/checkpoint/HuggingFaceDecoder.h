// Decoder-only language models in Hugging Face's folders: config.json, and the tensors of the folder's
// .safetensors files.
#pragma once
#include "frontends/checkpoint/DecoderConfig.h"
#include "frontends/checkpoint/DecoderWeights.h"
#include "frontends/checkpoint/QuantizedTensor.h"
#include "frontends/checkpoint/SafeTensors.h"

namespace dspark::checkpoint {

/// What config.json says about the tensors.
struct TensorRules {
  bool hasExperts = false;               // some layers are mixtures
  bool isLatent = false;                 // attention is (DeepSeek)
  int64_t layers = 0, predictLayers = 0; // those that predict further tokens stand behind; nothing reads them
  bool isTied = false;                   // the embedding is the output projection, too
  bool hasOuterNorms = false;            // norms before and behind attention and feed-forward
  bool hasHeadNorms = false;             // of each head's queries and keys
  bool addsOneToNorms = false;           // of norms the file has w - 1
  QuantizationScheme quantization;
};

struct HuggingFaceConfig {
  DecoderConfig decoder;
  TensorRules tensors;
};

/// `json` is the text of config.json. Errors: Unsupported with the model or setting and those that are known;
/// CorruptFile with the key, the value found and the limit.
StatusOr<HuggingFaceConfig> readHuggingFaceConfig(std::string_view json);

class HuggingFaceWeights : public DecoderWeights {
public:
  /// Errors: no embedding, norm or, where it is not tied, output projection; Unsupported for a tensor of a
  /// layer that no operation would read.
  static StatusOr<std::unique_ptr<HuggingFaceWeights>> open(std::shared_ptr<const SafeTensorsFolder> folder,
                                                            const HuggingFaceConfig &config);

  bool has(std::string_view name) const override;
  StatusOr<Matrix> matrix(std::string_view name, int64_t n, int64_t k) const override;
  StatusOr<std::vector<Matrix>> experts(std::string_view name, int64_t count, int64_t n,
                                        int64_t k) const override;
  StatusOr<std::vector<float>> vector(std::string_view name, int64_t n) const override;

private:
  HuggingFaceWeights(std::shared_ptr<const SafeTensorsFolder> folder, TensorRules rules)
      : folder(std::move(folder)), rules(std::move(rules)) {}
  StatusOr<Matrix> matrixNamed(std::string file, int64_t n, int64_t k) const;
  Status findPrefixes();
  Status checkNorms(int64_t layers) const;
  Status checkLayers() const;
  bool exists(std::string file) const;
  /// The file's name of a vector, whole.
  std::string vectorName(std::string_view name) const;
  /// The file's name of it without ".weight", "*" for an expert's number; "" if the model has no such tensor.
  std::string fileName(std::string_view name) const;

  std::shared_ptr<const SafeTensorsFolder> folder;
  TensorRules rules;
  std::string prefix, output; // "model.", "lm_head" or what wraps them
};

} // namespace dspark::checkpoint
