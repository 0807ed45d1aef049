// A language model's checkpoint -> module of the `dspark` dialect, weights, tokenizer and chat template.
#pragma once
#include "frontends/language/DecoderBuilder.h"
#include "runtime/llm/tokenizer/TokenizerSpec.h"

namespace dspark::language {

/// Whether it is a folder, or a file that starts as a GGUF file does.
bool isCheckpoint(const std::string &path);

struct ImportedModel {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  WeightStore weights;
  checkpoint::DecoderConfig config;
  llm::TokenizerSpec tokenizer;
  std::string chatTemplate; // Jinja text; "" if the checkpoint has none
};

/// Whether every token has a row of logits.
Status checkVocabulary(const ImportedModel &model);

/// Errors: those of the readers, with the path in front.
StatusOr<ImportedModel> importLanguageModel(const std::string &path, const DecoderOptions &options,
                                            mlir::MLIRContext &context);

} // namespace dspark::language
