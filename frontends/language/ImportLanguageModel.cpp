#include "frontends/language/ImportLanguageModel.h"
#include "frontends/checkpoint/GgufDecoder.h"
#include "frontends/checkpoint/GgufTokenizer.h"
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
  if (int64_t(model.tokenizer.tokens.size()) > model.config.vocabulary)
    return corruptFile("the tokenizer has " + std::to_string(model.tokenizer.tokens.size()) +
                       " tokens, more than the " + std::to_string(model.config.vocabulary) +
                       " rows of 'token_embd.weight'");
  checkpoint::GgufWeights weights(file);
  DSPARK_ASSIGN_OR_RETURN(model.module, buildDecoder(model.config, weights, options, context, model.weights));
  return model;
}

} // namespace

bool isCheckpoint(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  char magic[4] = {};
  file.read(magic, sizeof magic);
  return file.gcount() == sizeof magic && std::string_view(magic, sizeof magic) == "GGUF";
}

StatusOr<ImportedModel> importLanguageModel(const std::string &path, const DecoderOptions &options,
                                            mlir::MLIRContext &context) {
  DSPARK_ASSIGN_OR_RETURN(std::shared_ptr<const checkpoint::GgufFile> file, checkpoint::GgufFile::open(path));
  StatusOr<ImportedModel> model = importGguf(file, options, context);
  if (!model.isOk())
    return model.status().in(path);
  return model;
}

} // namespace dspark::language
