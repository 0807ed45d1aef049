// The tensors of a draft (DraftConfig.h), under the names of DecoderWeights.h with "draft." in front, and
// besides: fc (hidden states -> the draft's width), hidden_norm behind it (in EAGLE-3 blk.0.hidden_norm),
// markov_w1, markov_w2, markov_gate, markov_joint, confidence. Names without "draft." are the target's.
#pragma once
#include "frontends/checkpoint/DraftConfig.h"

namespace dspark::checkpoint {

class DraftWeights : public DecoderWeights {
public:
  /// `target` must outlive this. Errors: a norm that is missing, a tensor that has no part in the draft; a
  /// d2t that leaves the target's vocabulary.
  static StatusOr<std::unique_ptr<DraftWeights>> open(std::shared_ptr<const SafeTensorsFolder> folder,
                                                      const DraftConfig &config,
                                                      const DecoderWeights &target);

  bool has(std::string_view name) const override;
  StatusOr<Matrix> matrix(std::string_view name, int64_t n, int64_t k) const override;
  StatusOr<std::vector<Matrix>> experts(std::string_view name, int64_t count, int64_t n,
                                        int64_t k) const override;
  StatusOr<std::vector<float>> vector(std::string_view name, int64_t n) const override;

  /// Of each token of the target's vocabulary, which of the draft's logits is its own, -1: none. Empty where
  /// both are the same.
  const std::vector<int32_t> &logitOfToken() const { return logitOf; }

private:
  DraftWeights(std::shared_ptr<const SafeTensorsFolder> folder, const DraftConfig &config,
               const DecoderWeights &target)
      : folder(std::move(folder)), config(config), target(target) {}
  std::string fileName(std::string_view name) const;
  Status checkTensors() const;
  Status readVocabulary();

  std::shared_ptr<const SafeTensorsFolder> folder;
  const DraftConfig &config;
  const DecoderWeights &target;
  std::vector<int32_t> logitOf;
};

} // namespace dspark::checkpoint
