#include "frontends/language/ImportLanguageModel.h"
#include "frontends/checkpoint/GgufDecoder.h"
#include "frontends/checkpoint/GgufTokenizer.h"
#include "frontends/checkpoint/HuggingFaceDecoder.h"
#include "frontends/checkpoint/HuggingFaceTokenizer.h"
#include "frontends/checkpoint/TextFile.h"
#include <filesystem>
#include <fstream>

namespace dspark::language {
namespace {

StatusOr<ImportedModel> importGguf(const std::shared_ptr<const checkpoint::GgufFile> &file,
                                   const DecoderOptions &options, mlir::MLIRContext &context) {
  ImportedModel model;
  DSPARK_ASSIGN_OR_RETURN(model.config, checkpoint::readGgufConfig(*file));
  DSPARK_ASSIGN_OR_RETURN(model.tokenizer, checkpoint::readGgufTokenizer(*file));
  if (const checkpoint::GgufValue *text = file->find("tokenizer.chat_template"))
    model.chatTemplate = std::string(text->string().value_or(""));
  DSPARK_RETURN_IF_ERROR(checkVocabulary(model));
  checkpoint::GgufWeights weights(file);
  DSPARK_ASSIGN_OR_RETURN(model.module, buildDecoder(model.config, weights, options, context, model.weights));
  return model;
}

StatusOr<ImportedModel> importHuggingFace(const std::string &folder, const DecoderOptions &options,
                                          mlir::MLIRContext &context) {
  DSPARK_ASSIGN_OR_RETURN(std::optional<std::string> json, checkpoint::readTextFile(folder, "config.json"));
  if (!json)
    return Status(Code::NotFound, "the folder has no config.json");
  StatusOr<checkpoint::HuggingFaceConfig> config = checkpoint::readHuggingFaceConfig(*json);
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
  DSPARK_ASSIGN_OR_RETURN(model.module,
                          buildDecoder(model.config, *weights, options, context, model.weights));
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

StatusOr<ImportedModel> importLanguageModel(const std::string &path, const DecoderOptions &options,
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
