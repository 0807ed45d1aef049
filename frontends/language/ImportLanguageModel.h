// A language model's checkpoint -> module of the `dspark` dialect, weights, tokenizer and chat template.
#pragma once
#include "frontends/language/DecoderBuilder.h"
#include "runtime/llm/speculation/DrafterRecord.h"
#include "runtime/llm/tokenizer/TokenizerSpec.h"

namespace dspark::language {

/// Whether it is a folder, or a file that starts as a GGUF file does.
bool isCheckpoint(const std::string &path);

struct LanguageOptions {
  DecoderOptions decoder; // taps are those of the draft
  std::string draft;      // folder of a draft that reads hidden states (DraftConfig.h); "": none
  /// Of a model of so many layers those that draft by themselves, a drafter each; null: none.
  std::function<std::vector<std::vector<int64_t>>(int64_t layers)> selfDrafts;
};

struct ImportedModel {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  WeightStore weights;
  checkpoint::DecoderConfig config;
  llm::TokenizerSpec tokenizer;
  std::string chatTemplate; // Jinja text; "" if the checkpoint has none
  std::vector<llm::DrafterRecord> drafters;
};

/// Whether every token has a row of logits.
Status checkVocabulary(const ImportedModel &model);

/// Errors: those of the readers, with the path in front.
StatusOr<ImportedModel> importLanguageModel(const std::string &path, const LanguageOptions &options,
                                            mlir::MLIRContext &context);

} // namespace dspark::language
