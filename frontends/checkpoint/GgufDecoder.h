// Decoder-only language models in GGUF files: their configuration, and their tensors.
#pragma once
#include "frontends/checkpoint/DecoderConfig.h"
#include "frontends/checkpoint/DecoderWeights.h"
#include "frontends/checkpoint/Gguf.h"
#include <memory>

namespace dspark::checkpoint {

/// Errors: Unsupported with the architecture or setting and those that are known; CorruptFile with the key,
/// the value found and the limit.
StatusOr<DecoderConfig> readGgufConfig(const GgufFile &file);

class GgufWeights : public DecoderWeights {
public:
  explicit GgufWeights(std::shared_ptr<const GgufFile> file) : file(std::move(file)) {}

  bool has(std::string_view name) const override { return find(name) != nullptr; }
  StatusOr<Matrix> matrix(std::string_view name, int64_t n, int64_t k) const override;
  StatusOr<std::vector<Matrix>> experts(std::string_view name, int64_t count, int64_t n,
                                        int64_t k) const override;
  StatusOr<std::vector<float>> vector(std::string_view name, int64_t n) const override;

private:
  const GgufTensor *find(std::string_view name) const;
  StatusOr<Matrix> rowsOf(const GgufTensor &tensor, int64_t n, int64_t k) const;
  StatusOr<const GgufTensor *> checked(std::string_view name, const std::vector<int64_t> &dims) const;

  std::shared_ptr<const GgufFile> file;
};

} // namespace dspark::checkpoint
