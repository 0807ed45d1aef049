#include "frontends/language/ImportLanguageModel.h"
#include "frontends/checkpoint/GgufDecoder.h"
#include "frontends/checkpoint/GgufTokenizer.h"
#include "frontends/checkpoint/HuggingFaceDecoder.h"
#include "frontends/checkpoint/HuggingFaceTokenizer.h"
#include "frontends/checkpoint/TextFile.h"
#include "frontends/language/DraftBuilder.h"
#include <filesystem>
#include <fstream>

namespace dspark::language {
namespace {

StatusOr<std::string> readConfig(const std::string &folder) {
  DSPARK_ASSIGN_OR_RETURN(std::optional<std::string> json, checkpoint::readTextFile(folder, "config.json"));
  if (!json)
    return Status(Code::NotFound, "the folder has no config.json");
  return std::move(*json);
}

llm::DrafterRecord recordOf(const checkpoint::DraftConfig &draft) {
  const bool hasHead = draft.markov != checkpoint::MarkovHead::None || draft.hasConfidence;
  llm::DrafterRecord record;
  record.function = "draft";
  record.hidden = draft.model.decoder.hidden;
  if (draft.kind == checkpoint::DraftConfig::Kind::Eagle3) {
    record.kind = llm::DrafterRecord::Kind::Eagle3;
    record.name = "eagle3";
    record.longestDraft = llm::kEagle3Draft;
    return record;
  }
  record.name = hasHead ? "dspark" : "dflash";
  record.longestDraft = int32_t(draft.longestBlock());
  record.blockRows = int32_t(draft.blockRows);
  record.maskToken = int32_t(draft.maskToken);
  record.anchorPredicts = draft.anchorPredicts;
  record.hasHead = hasHead;
  record.headState = draft.markov == checkpoint::MarkovHead::Rnn ? draft.markovRank : 0;
  record.draftLogits = hasHead ? draft.draftVocabulary : draft.model.decoder.vocabulary;
  return record;
}

Status addDraft(ImportedModel &model, const checkpoint::DraftConfig &config,
                const checkpoint::DecoderWeights &target, const LanguageOptions &options) {
  DSPARK_ASSIGN_OR_RETURN(auto folder, checkpoint::SafeTensorsFolder::open(options.draft));
  DSPARK_ASSIGN_OR_RETURN(auto weights, checkpoint::DraftWeights::open(std::move(folder), config, target));
  DSPARK_RETURN_IF_ERROR(buildDraft(config, *weights, options.decoder, *model.module, model.weights));
  model.drafters.push_back(recordOf(config));
  return Status::ok();
}

Status addSelfDrafts(ImportedModel &model, const checkpoint::DecoderWeights &weights,
                     const LanguageOptions &options) {
  if (!options.selfDrafts)
    return Status::ok();
  const auto drafts = options.selfDrafts(int64_t(model.config.layers.size()));
  for (const std::vector<int64_t> &layers : drafts) {
    llm::DrafterRecord record;
    record.kind = llm::DrafterRecord::Kind::Self;
    record.name = drafts.size() == 1 ? "self" : "self." + std::to_string(model.drafters.size());
    record.function = record.name;
    record.longestDraft = llm::kSelfDraft;
    record.layers = layers;
    DSPARK_RETURN_IF_ERROR(buildSelfDraft(model.config, weights, options.decoder, record.function, layers,
                                          *model.module, model.weights));
    model.drafters.push_back(std::move(record));
  }
  return Status::ok();
}

// The model's function and those of its drafts.
Status build(ImportedModel &model, const checkpoint::DecoderWeights &weights, const LanguageOptions &options,
             mlir::MLIRContext &context) {
  model.module = mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
  if (options.draft.empty()) {
    DSPARK_RETURN_IF_ERROR(
        buildDecoder(model.config, weights, options.decoder, *model.module, model.weights));
    return addSelfDrafts(model, weights, options);
  }
  StatusOr<std::string> json = readConfig(options.draft);
  StatusOr<checkpoint::DraftConfig> draft =
      json.isOk() ? checkpoint::readDraftConfig(*json) : StatusOr<checkpoint::DraftConfig>(json.status());
  if (!draft.isOk())
    return draft.status().in("the draft " + options.draft);
  DSPARK_RETURN_IF_ERROR(checkDraftFits(*draft, model.config));
  DecoderOptions decoder = options.decoder;
  decoder.taps = draft->taps;
  DSPARK_RETURN_IF_ERROR(buildDecoder(model.config, weights, decoder, *model.module, model.weights));
  return addDraft(model, *draft, weights, options).in("the draft " + options.draft);
}

StatusOr<ImportedModel> importGguf(const std::shared_ptr<const checkpoint::GgufFile> &file,
                                   const LanguageOptions &options, mlir::MLIRContext &context) {
  ImportedModel model;
  DSPARK_ASSIGN_OR_RETURN(model.config, checkpoint::readGgufConfig(*file));
  DSPARK_ASSIGN_OR_RETURN(model.tokenizer, checkpoint::readGgufTokenizer(*file));
  if (const checkpoint::GgufValue *text = file->find("tokenizer.chat_template"))
    model.chatTemplate = std::string(text->string().value_or(""));
  DSPARK_RETURN_IF_ERROR(checkVocabulary(model));
  checkpoint::GgufWeights weights(file);
  DSPARK_RETURN_IF_ERROR(build(model, weights, options, context));
  return model;
}

StatusOr<ImportedModel> importHuggingFace(const std::string &folder, const LanguageOptions &options,
                                          mlir::MLIRContext &context) {
  DSPARK_ASSIGN_OR_RETURN(std::string json, readConfig(folder));
  StatusOr<checkpoint::HuggingFaceConfig> config = checkpoint::readHuggingFaceConfig(json);
  if (!config.isOk())
    return config.status().in("config.json");
  ImportedModel model;
  model.config = config->decoder;
  DSPARK_ASSIGN_OR_RETURN(checkpoint::HuggingFaceTokenizer tokenizer,
                          checkpoint::readHuggingFaceTokenizer(folder));
  model.tokenizer = std::move(tokenizer.spec);
  model.chatTemplate = std::move(tokenizer.chatTemplate);
  DSPARK_RETURN_IF_ERROR(checkVocabulary(model));
  DSPARK_ASSIGN_OR_RETURN(auto tensors, checkpoint::SafeTensorsFolder::open(folder));
  DSPARK_ASSIGN_OR_RETURN(auto weights, checkpoint::HuggingFaceWeights::open(tensors, *config));
  DSPARK_RETURN_IF_ERROR(build(model, *weights, options, context));
  return model;
}

} // namespace

Status checkVocabulary(const ImportedModel &model) {
  if (int64_t(model.tokenizer.tokens.size()) <= model.config.vocabulary)
    return Status::ok();
  return corruptFile("the tokenizer has " + std::to_string(model.tokenizer.tokens.size()) +
                     " tokens, more than the embedding's " + std::to_string(model.config.vocabulary) +
                     " rows");
}

bool isCheckpoint(const std::string &path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    return true;
  std::ifstream file(path, std::ios::binary);
  char magic[4] = {};
  file.read(magic, sizeof magic);
  return file.gcount() == sizeof magic && std::string_view(magic, sizeof magic) == "GGUF";
}

StatusOr<ImportedModel> importLanguageModel(const std::string &path, const LanguageOptions &options,
                                            mlir::MLIRContext &context) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    StatusOr<ImportedModel> model = importHuggingFace(path, options, context);
    return model.isOk() ? std::move(model) : model.status().in(path);
  }
  DSPARK_ASSIGN_OR_RETURN(std::shared_ptr<const checkpoint::GgufFile> file, checkpoint::GgufFile::open(path));
  StatusOr<ImportedModel> model = importGguf(file, options, context);
  if (!model.isOk())
    return model.status().in(path);
  return model;
}

} // namespace dspark::language
