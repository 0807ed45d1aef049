// What dspark-rt does with a language model's plan: text from a prompt, a chat, many prompts, the perplexity
// of a text.
#pragma once
#include "runtime/llm/model/LanguageModel.h"
#include "runtime/serving/Engine.h"
#include <CLI/CLI.hpp>
#include <string>

namespace dspark {

struct LanguageRequest {
  std::string prompt, prompts, system, perplexity; // texts; file names
  std::string speculate = "auto";                  // Speculate.h
  bool isChat = false, isJson = false, showsStatistics = false;
  int64_t sharedTokens = 0;          // of finished requests that lookup searches
  int64_t context = 512, chunks = 0; // of a perplexity
  serving::Request request;          // all but the prompt
  serving::EngineOptions engine;
  llm::PlanModelOptions model;

  bool isAsked() const { return isChat || !prompt.empty() || !prompts.empty() || !perplexity.empty(); }
};

/// Declares the options, in a group of their own.
void addLanguageOptions(CLI::App &app, LanguageRequest &request);

Status runLanguage(const LanguageRequest &request, std::shared_ptr<const Program> program);

/// A text file of at most 1 GiB.
StatusOr<std::string> readText(const std::string &path);

/// --prompt, --chat and --prompts.
Status generate(const LanguageRequest &request, llm::LanguageModel &language);

} // namespace dspark
