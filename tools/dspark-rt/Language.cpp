#include "tools/dspark-rt/Language.h"
#include "runtime/base/MappedFile.h"
#include "runtime/llm/model/Perplexity.h"
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace dspark {
namespace {

constexpr int64_t kLargestText = int64_t(1) << 30;

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

void addSampling(CLI::App &group, serving::Request &request) {
  llm::SamplingParameters &sampling = request.sampling;
  sampling.temperature = 0;
  group
      .add_option("--max-tokens", request.maxTokens,
                  "most tokens of an answer (default: what the context holds)")
      ->check(CLI::PositiveNumber);
  group.add_option("--temperature", sampling.temperature, "0 (default): always the likeliest token");
  group.add_option("--top-k", sampling.topK, "only the K likeliest tokens (default 0: all)");
  group.add_option("--top-p", sampling.topP,
                   "the likeliest tokens that together have this probability (default 1)");
  group.add_option("--min-p", sampling.minP,
                   "tokens of at least this share of the likeliest one's probability");
  group.add_option("--typical-p", sampling.typicalP,
                   "locally typical tokens of this probability (default 1: all)");
  group.add_option("--repetition-penalty", sampling.repetitionPenalty,
                   "divides logits of tokens seen (default 1)");
  group.add_option("--presence-penalty", sampling.presencePenalty,
                   "taken off tokens that the answer has (default 0)");
  group.add_option("--frequency-penalty", sampling.frequencyPenalty,
                   "the same, times their count (default 0)");
  group.add_option("--sample-seed", sampling.seed, "of draws at a temperature above 0 (default 0)");
  group.add_option("--stop", request.stopStrings, "end the answer before this text; may be repeated");
  group.add_flag("--ignore-eos", request.ignoreTokenizerStops, "go on beyond the model's end-of-text tokens");
  group.add_option("-n,--choices", request.choices, "answers to each prompt (default 1)")
      ->check(CLI::Range(1, 128));
}

} // namespace

StatusOr<std::string> readText(const std::string &path) {
  DSPARK_ASSIGN_OR_RETURN(auto file, MappedFile::open(path));
  if (int64_t(file->bytes().size()) > kLargestText)
    return invalidArgument(path + " has " + std::to_string(file->bytes().size()) +
                           " bytes, expected at most " + std::to_string(kLargestText));
  return std::string(reinterpret_cast<const char *>(file->bytes().data()), file->bytes().size());
}

void addLanguageOptions(CLI::App &app, LanguageRequest &request) {
  auto *group = app.add_option_group("Language models");
  group->add_option("--prompt", request.prompt, "continue this text");
  group->add_flag("--chat", request.isChat, "answer the lines of standard input as turns of a conversation");
  group->add_option("--prompts", request.prompts,
                    "answer every line of this JSON-lines FILE: an object with a text 'prompt', a list "
                    "'tokens' or 'messages', or a "
                    "list of texts 'turns'; all side by side, answers as JSON lines");
  group->add_option("--system", request.system, "the system message of --chat and --prompts");
  addSampling(*group, request.request);
  group
      ->add_option("--cache-tokens", request.model.cacheTokens,
                   "tokens that the key-value cache holds (default: the model's context length)")
      ->check(CLI::PositiveNumber);
  group->add_option("--page-size", request.model.pageSize, "tokens of a page of the cache (default 32)")
      ->check(CLI::Range(1, 4096));
  group->add_option("--sequences", request.engine.scheduling.sequences, "that run side by side (default 64)")
      ->check(CLI::Range(1, 4096));
  group->add_option(
      "--speculate", request.speculate,
      "what guesses tokens ahead for the model to check several in one step, which changes no answer: auto "
      "(default), lookup (in prompt and answer), off, a drafter of the plan's (dspark, dflash, eagle3, "
      "self), or "
      "the FILE of a smaller model's plan");
  group
      ->add_option(
          "--lookup-shared", request.sharedTokens,
          "lookup also searches so many tokens of requests that have ended (default 0: a request sees its "
          "own text alone)")
      ->check(CLI::Range(0, 1 << 30));
  group->add_flag("--stats", request.showsStatistics, "print tokens per second and drafts to standard error");
  group->add_option("--perplexity", request.perplexity, "measure the perplexity of this text FILE");
  group->add_option("--context", request.context, "tokens of each chunk of --perplexity (default 512)")
      ->check(CLI::Range(4, 1 << 30));
  group->add_option("--chunks", request.chunks, "at most so many chunks of --perplexity (default: all)")
      ->check(CLI::Range(1, 1 << 30));
}

Status runLanguage(const LanguageRequest &request, std::shared_ptr<const Program> program) {
  int asked =
      !request.prompt.empty() + !request.prompts.empty() + !request.perplexity.empty() + request.isChat;
  if (asked > 1)
    return invalidArgument("--prompt, --chat, --prompts and --perplexity exclude each other");
  llm::PlanModelOptions options = request.model;
  if (!request.perplexity.empty() && options.cacheTokens == 0)
    options.cacheTokens = request.context;
  DSPARK_ASSIGN_OR_RETURN(auto language, llm::LanguageModel::open(std::move(program), options));
  return request.perplexity.empty() ? generate(request, language) : runPerplexity(request, language);
}

} // namespace dspark
