#include "frontends/checkpoint/DraftWeights.h"
#include "frontends/checkpoint/FloatTensor.h"
#include "frontends/checkpoint/HuggingFaceNames.h"
#include "frontends/checkpoint/QuantizedTensor.h"
#include <algorithm>
#include <cstring>

namespace dspark::checkpoint {
namespace {

constexpr PartName kDraftParts[] = {
    {"output", "lm_head"},
    {"fc", "fc"},
    {"hidden_norm", "hidden_norm"},
    {"markov_w1", "markov_head.markov_w1"},
    {"markov_w2", "markov_head.markov_w2"},
    {"markov_gate", "markov_head.gate_proj"},
    {"markov_joint", "markov_head.joint_proj"},
    {"confidence", "confidence_head.proj"},
};
constexpr std::string_view kHiddenNorm = "hidden_norm"; // of EAGLE-3's first layer as well
constexpr std::string_view kOwn = "draft.", kLayer = "blk.";

// "name.bias" -> "name", true
std::pair<std::string_view, bool> splitBias(std::string_view name) {
  constexpr std::string_view kBias = ".bias";
  const bool isBias = name.ends_with(kBias);
  return {isBias ? name.substr(0, name.size() - kBias.size()) : name, isBias};
}

} // namespace

StatusOr<std::unique_ptr<DraftWeights>> DraftWeights::open(std::shared_ptr<const SafeTensorsFolder> folder,
                                                           const DraftConfig &config,
                                                           const DecoderWeights &target) {
  std::unique_ptr<DraftWeights> weights(new DraftWeights(std::move(folder), config, target));
  DSPARK_RETURN_IF_ERROR(weights->checkTensors());
  DSPARK_RETURN_IF_ERROR(weights->readVocabulary());
  return weights;
}

/// The file's name with its ending; "" if a draft has no such tensor.
std::string DraftWeights::fileName(std::string_view name) const {
  auto [part, isBias] = splitBias(name.substr(kOwn.size()));
  std::string file;
  if (part.starts_with(kLayer)) {
    const auto [layer, ours] = layerPart(part.substr(kLayer.size()));
    const std::string_view found = ours == kHiddenNorm ? kHiddenNorm : fileOf(kLayerParts, ours);
    if (layer >= 0 && !found.empty())
      file = "layers." + std::to_string(layer) + "." + std::string(found);
  } else {
    const std::string_view found = fileOf(kModelParts, part);
    file = std::string(found.empty() ? fileOf(kDraftParts, part) : found);
  }
  return file.empty() ? file : file + (isBias ? ".bias" : ".weight");
}

// The graph leaves out norms that a model does not have; these a draft must have. And a tensor that nothing
// reads would mean another draft than the configuration says.
Status DraftWeights::checkTensors() const {
  const bool isBlock = config.kind == DraftConfig::Kind::Block;
  std::vector<std::string> norms = {"draft.output_norm",
                                    isBlock ? "draft.hidden_norm" : "draft.blk.0.hidden_norm"};
  std::vector<std::string> read = {"draft.token_embd", "draft.output", "draft.fc"};
  for (size_t i = 0; i < config.model.decoder.layers.size(); ++i)
    for (const PartName &part : kLayerParts) {
      const std::string name = "draft.blk." + std::to_string(i) + "." + std::string(part.ours);
      const bool isHeadNorm = part.ours.ends_with("_norm") && part.file.starts_with("self_attn.");
      const bool isNorm = part.file.ends_with("norm");
      if (isNorm && (!isHeadNorm || config.model.tensors.hasHeadNorms))
        norms.push_back(name);
      if (!isNorm)
        read.insert(read.end(), {name, name + ".bias"});
    }
  if (config.markov != MarkovHead::None)
    read.insert(read.end(), {"draft.markov_w1", "draft.markov_w2"});
  if (config.markov == MarkovHead::Gated)
    read.insert(read.end(), {"draft.markov_gate", "draft.markov_gate.bias"});
  if (config.markov == MarkovHead::Rnn)
    read.insert(read.end(), {"draft.markov_joint", "draft.markov_joint.bias"});
  if (config.hasConfidence)
    read.insert(read.end(), {"draft.confidence", "draft.confidence.bias"});
  for (const std::string &name : norms)
    if (!has(name))
      return corruptFile("tensor '" + fileName(name) + "' is missing");
  read.insert(read.end(), norms.begin(), norms.end());
  std::vector<std::string> files = {"d2t", "t2d"};
  for (const std::string &name : read)
    files.push_back(fileName(name));
  for (const auto &[name, tensor] : folder->tensors())
    if (std::ranges::find(files, name) == files.end())
      return {Code::Unsupported, "tensor '" + name + "' has no part in a draft of this configuration"};
  return Status::ok();
}

// d2t[i]: the i-th of the draft's tokens is i + d2t[i] of the target's (EAGLE's convention).
Status DraftWeights::readVocabulary() {
  const int64_t own = config.draftVocabulary, all = config.model.decoder.vocabulary;
  if (own == all && !folder->find("d2t"))
    return Status::ok();
  DSPARK_ASSIGN_OR_RETURN(const SafeTensor *table, findTensor(*folder, "d2t", {DType::I64}, {own}));
  logitOf.assign(size_t(all), -1);
  for (int64_t i = 0; i < own; ++i) {
    int64_t distance;
    std::memcpy(&distance, table->bytes.data() + size_t(i) * sizeof distance, sizeof distance);
    if (distance < -i || distance >= all - i || logitOf[size_t(i + distance)] >= 0)
      return corruptFile("tensor 'd2t': entry " + std::to_string(i) + " is " + std::to_string(distance) +
                         ", expected the distance to another of " + std::to_string(all) + " tokens");
    logitOf[size_t(i + distance)] = int32_t(i);
  }
  return Status::ok();
}

bool DraftWeights::has(std::string_view name) const {
  return name.starts_with(kOwn) ? folder->find(fileName(name)) != nullptr : target.has(name);
}

StatusOr<Matrix> DraftWeights::matrix(std::string_view name, int64_t n, int64_t k) const {
  if (!name.starts_with(kOwn))
    return target.matrix(name, n, k);
  return floatMatrix(folder, fileName(name), n, k);
}

StatusOr<std::vector<Matrix>> DraftWeights::experts(std::string_view name, int64_t count, int64_t n,
                                                    int64_t k) const {
  if (!name.starts_with(kOwn))
    return target.experts(name, count, n, k);
  return Status(Code::Unsupported, "tensor '" + fileName(name) + "': drafts have no experts");
}

StatusOr<std::vector<float>> DraftWeights::vector(std::string_view name, int64_t n) const {
  if (!name.starts_with(kOwn))
    return target.vector(name, n);
  return floatVector(*folder, fileName(name), n);
}

} // namespace dspark::checkpoint
