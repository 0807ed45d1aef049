// What dspark-rt does with a language model's plan: text from a prompt, a chat, many prompts, the perplexity
// of a text.
#pragma once
#include "runtime/executor/Session.h"
#include "runtime/llm/model/LanguageModel.h"
#include <CLI/CLI.hpp>
#include <string>

namespace dspark {

struct LanguageRequest {
  std::string prompt, prompts, perplexity; // text; file names
  bool isChat = false, isJson = false, showsStats = false;
  int64_t context = 512, chunks = 0; // of a perplexity
  llm::PlanModelOptions model;

  bool isAsked() const { return isChat || !prompt.empty() || !prompts.empty() || !perplexity.empty(); }
};

/// Declares the options, in a group of their own.
void addLanguageOptions(CLI::App &app, LanguageRequest &request);

Status runLanguage(const LanguageRequest &request, std::shared_ptr<const Program> program);

} // namespace dspark
