#include "tools/dspark-rt/Language.h"
#include "runtime/base/MappedFile.h"
#include "runtime/llm/model/Perplexity.h"
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

namespace dspark {
namespace {

constexpr int64_t kLargestText = int64_t(1) << 30;

StatusOr<std::string> readText(const std::string &path) {
  DSPARK_ASSIGN_OR_RETURN(auto file, MappedFile::open(path));
  if (int64_t(file->bytes().size()) > kLargestText)
    return invalidArgument(path + " has " + std::to_string(file->bytes().size()) +
                           " bytes, expected at most " + std::to_string(kLargestText));
  return std::string(reinterpret_cast<const char *>(file->bytes().data()), file->bytes().size());
}

Status runPerplexity(const LanguageRequest &request, llm::LanguageModel &language) {
  DSPARK_ASSIGN_OR_RETURN(std::string text, readText(request.perplexity));
  auto tokens = language.tokenizer->encode(text);
  if (!tokens.isOk())
    return tokens.status().in(request.perplexity);
  llm::PerplexityOptions options;
  options.context = request.context;
  options.chunks = request.chunks;
  const llm::TokenizerSpec &spec = language.tokenizer->spec();
  options.beginToken = spec.addBegin ? spec.begin : -1;
  bool isTerminal = isatty(fileno(stderr));
  options.onChunk = [&](int64_t chunk, int64_t chunks, double perplexity) {
    if (isTerminal)
      std::fprintf(stderr, "\rchunk %lld of %lld: %.4f ", static_cast<long long>(chunk),
                   static_cast<long long>(chunks), perplexity);
  };
  auto result = llm::measurePerplexity(*language.model, *tokens, options);
  if (isTerminal)
    std::fprintf(stderr, "\n");
  if (!result.isOk())
    return result.status().in(request.perplexity);
  if (request.isJson)
    std::cout << nlohmann::json{{"perplexity", result->perplexity},
                                {"standard_error", result->standardError},
                                {"chunks", result->chunks},
                                {"tokens", result->tokens}}
                     .dump(2)
              << "\n";
  else
    std::printf("perplexity %.4f +- %.4f over %lld tokens in %lld chunks of %lld\n", result->perplexity,
                result->standardError, static_cast<long long>(result->tokens),
                static_cast<long long>(result->chunks), static_cast<long long>(request.context));
  return Status::ok();
}

} // namespace

void addLanguageOptions(CLI::App &app, LanguageRequest &request) {
  auto *group = app.add_option_group("Language models");
  group->add_option("--perplexity", request.perplexity, "measure the perplexity of this text FILE");
  group->add_option("--context", request.context, "tokens of each chunk of --perplexity (default 512)")
      ->check(CLI::Range(4, 1 << 30));
  group->add_option("--chunks", request.chunks, "at most so many chunks of --perplexity (default: all)")
      ->check(CLI::Range(1, 1 << 30));
}

Status runLanguage(const LanguageRequest &request, std::shared_ptr<const Program> program) {
  llm::PlanModelOptions options = request.model;
  if (options.cacheTokens == 0)
    options.cacheTokens = request.context;
  DSPARK_ASSIGN_OR_RETURN(auto language, llm::LanguageModel::open(std::move(program), options));
  return runPerplexity(request, language);
}

} // namespace dspark
