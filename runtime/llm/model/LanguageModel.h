// What a language model's plan holds, opened: the model, its tokenizer and its chat template.
#pragma once
#include "runtime/llm/model/PlanModel.h"
#include "runtime/llm/template/Template.h"
#include "runtime/llm/tokenizer/Tokenizer.h"
#include <optional>

namespace dspark::llm {

/// One turn of a conversation.
struct Message {
  std::string role, content; // "system", "user", "assistant" ...
};

struct LanguageModel {
  std::unique_ptr<PlanModel> model;
  std::unique_ptr<Tokenizer> tokenizer;
  std::optional<Template> chatTemplate;

  /// Errors: those of PlanModel, Tokenizer and Template, with the plan's path in front.
  static StatusOr<LanguageModel> open(std::shared_ptr<const Program> program,
                                      const PlanModelOptions &options = {});

  /// The conversation as the prompt of the next turn. Errors: InvalidArgument if the model has no chat
  /// template, what the template raises.
  StatusOr<std::vector<int32_t>> encodeChat(const std::vector<Message> &messages) const;
};

} // namespace dspark::llm
