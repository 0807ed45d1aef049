// --prompt, --chat and --prompts: requests to the engine, and what comes back.
#include "tools/dspark-rt/Conversation.h"
#include "tools/dspark-rt/Language.h"
#include "tools/dspark-rt/Speculate.h"
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace dspark {
namespace {

using nlohmann::json;
using serving::FinishReason;

constexpr int32_t kMostMeasured =
    8; // sequences side by side in the table of steps; beyond, it is extrapolated

const char *nameOf(FinishReason reason) {
  switch (reason) {
  case FinishReason::None:
    return "none";
  case FinishReason::Stop:
    return "stop";
  case FinishReason::Length:
    return "length";
  case FinishReason::Cancelled:
    return "cancelled";
  case FinishReason::Failed:
    break;
  }
  return "failed";
}

struct Answer {
  std::string text;
  std::vector<int32_t> tokens;
  FinishReason finish = FinishReason::None;
  Status status;
};

class Generator {
public:
  Generator(const LanguageRequest &request, llm::LanguageModel &language, serving::Engine &engine)
      : request(request), language(language), engine(engine) {}

  // Streams the answer to standard output.
  Status prompt() {
    Conversation conversation;
    conversation.prompt = request.prompt;
    std::vector<Answer> answers;
    DSPARK_RETURN_IF_ERROR(answer(conversation, /*isStreamed=*/!request.isJson, answers));
    if (request.isJson)
      std::cout << lineOf(0, answers).dump(2, ' ', false, json::error_handler_t::replace) << "\n";
    return Status::ok();
  }

  // A turn per line of standard input, until it ends.
  Status chat() {
    Conversation conversation;
    if (!request.system.empty())
      conversation.messages.push_back({"system", request.system});
    bool isTerminal = isatty(STDIN_FILENO);
    if (isTerminal)
      std::fprintf(stderr, "Type a message and press return; an empty line or Ctrl-D ends the chat.\n");
    for (std::string line;;) {
      if (isTerminal)
        std::fprintf(stderr, "> ");
      if (!std::getline(std::cin, line) || line.empty())
        return Status::ok();
      conversation.messages.push_back({"user", line});
      std::vector<Answer> answers;
      DSPARK_RETURN_IF_ERROR(answer(conversation, /*isStreamed=*/true, answers));
      conversation.messages.push_back({"assistant", answers[0].text});
    }
  }

  // All conversations of the file side by side; a JSON line for each as it is done.
  Status prompts() {
    DSPARK_ASSIGN_OR_RETURN(auto conversations, readConversations(request.prompts, request.system));
    std::vector<json> done(conversations.size());
    size_t next = 0, printed = 0;
    std::vector<Status> failures;
    for (size_t i = 0; i < conversations.size(); ++i)
      submitTurn(conversations[i], i, done);
    while (printed < done.size()) {
      engine.step();
      for (; printed < done.size() && done[printed].contains("finish"); ++printed)
        std::cout << done[printed].dump(-1, ' ', false, json::error_handler_t::replace) << "\n";
      if (size_t finished = size_t(engine.statistics().finished); finished != next && isatty(STDERR_FILENO)) {
        next = finished;
        std::fprintf(stderr, "\r%zu answers ", next);
      }
    }
    std::cout.flush();
    return Status::ok();
  }

private:
  // Submits the conversation as it is; `receive` is called for every output.
  Status submit(const Conversation &conversation, std::function<void(const serving::Output &)> receive) {
    serving::Request asked = request.request;
    DSPARK_ASSIGN_OR_RETURN(asked.prompt, conversation.encode(language));
    asked.receive = std::move(receive);
    auto id = engine.submit(std::move(asked));
    return id.isOk() ? Status::ok() : id.status();
  }

  static void take(const serving::Output &output, Answer &answer) {
    answer.text += output.text;
    answer.tokens.insert(answer.tokens.end(), output.tokens.begin(), output.tokens.end());
    answer.finish = output.finish;
    answer.status = output.status;
  }

  Status answer(const Conversation &conversation, bool isStreamed, std::vector<Answer> &answers) {
    answers.resize(size_t(request.request.choices));
    DSPARK_RETURN_IF_ERROR(submit(conversation, [&](const serving::Output &output) {
      take(output, answers[size_t(output.choice)]);
      if (isStreamed && output.choice == 0)
        std::cout << output.text << std::flush;
    }));
    while (engine.step())
      continue;
    for (size_t i = 1; i < answers.size() && isStreamed; ++i)
      std::cout << "\n--- choice " << i << "\n" << answers[i].text;
    if (isStreamed)
      std::cout << std::endl;
    return answers[0].status;
  }

  static json lineOf(size_t index, const std::vector<Answer> &answers) {
    json line = {{"index", index}, {"finish", nameOf(answers[0].finish)}};
    for (const Answer &answer : answers) {
      line["text"].push_back(answer.text);
      line["tokens"].push_back(answer.tokens);
    }
    if (answers.size() == 1) // one choice needs no list
      line["text"] = answers[0].text, line["tokens"] = answers[0].tokens;
    if (!answers[0].status.isOk())
      line["error"] = answers[0].status.message();
    return line;
  }

  // The next turn of conversation `index`; done[index] becomes its line once the last turn is answered.
  void submitTurn(Conversation &conversation, size_t index, std::vector<json> &done) {
    conversation.takeTurn();
    auto answers = std::make_shared<std::vector<Answer>>(size_t(request.request.choices));
    auto open = std::make_shared<size_t>(answers->size());
    Status status =
        submit(conversation, [this, &conversation, index, &done, answers, open](const auto &output) {
          take(output, (*answers)[size_t(output.choice)]);
          if (output.finish == FinishReason::None || --*open > 0)
            return;
          const Answer &first = answers->front();
          done[index]["turns"].push_back(first.text);
          if (conversation.turns.empty() || !first.status.isOk()) {
            json turns = std::move(done[index]["turns"]);
            done[index] = lineOf(index, *answers);
            if (turns.size() > 1)
              done[index]["turns"] = std::move(turns);
            return;
          }
          conversation.messages.push_back({"assistant", first.text});
          submitTurn(conversation, index, done);
        });
    if (!status.isOk())
      done[index] = {{"index", index}, {"finish", "failed"}, {"error", status.message()}};
  }

  const LanguageRequest &request;
  llm::LanguageModel &language;
  serving::Engine &engine;
};

void printStatistics(const serving::EngineStatistics &s) {
  auto rate = [](int64_t tokens, double seconds) { return seconds > 0 ? double(tokens) / seconds : 0; };
  double all = s.prefillSeconds + s.decodeSeconds + s.otherSeconds;
  auto number = [](int64_t value) { return static_cast<long long>(value); };
  std::fprintf(stderr, "prompt   %6lld tokens, %8.1f tokens/s; %lld more were in the cache\n",
               number(s.prefillTokens), rate(s.prefillTokens, s.prefillSeconds), number(s.cachedTokens));
  std::fprintf(stderr, "decode   %6lld tokens, %8.1f tokens/s\n", number(s.outputTokens),
               rate(s.outputTokens, s.decodeSeconds));
  std::fprintf(
      stderr,
      "time     %.3f s: prompt %.1f %%, decode %.1f %%, all else %.1f %%; %lld steps, %lld preemptions\n",
      all, 100 * s.prefillSeconds / all, 100 * s.decodeSeconds / all, 100 * s.otherSeconds / all,
      number(s.steps), number(s.preemptions));
}

// The most memory that this process ever held, where the system tells, beside what a plan has to hold.
void printMemory(llm::PlanModel &model) {
  std::ifstream status("/proc/self/status");
  std::string field, line;
  while (status >> field && field != "VmHWM:")
    std::getline(status, line);
  int64_t kibibytes = 0;
  if (!(status >> kibibytes))
    return;
  std::error_code error;
  const auto file = std::filesystem::file_size(model.session().program().file().path(), error);
  const llm::ModelFacts &facts = model.facts();
  std::fprintf(stderr, "memory   %.1f MB resident at most; the plan's file has %.1f, the cache %.1f\n",
               double(kibibytes) * 1024e-6, error ? 0 : double(file) * 1e-6,
               double(facts.pages * facts.pageBytes) * 1e-6);
}

// Of each drafter: what was drafted, verified and accepted, and how far drafts were accepted by position.
void printSpeculation(const llm::SpeculationStatistics &s) {
  auto number = [](int64_t value) { return static_cast<long long>(value); };
  double all = s.draftSeconds + s.verifySeconds;
  for (const llm::DrafterStatistics &drafter : s.drafters) {
    std::fprintf(stderr, "drafts   %6lld tokens by %s, %lld verified, %lld accepted\n",
                 number(drafter.draftedTokens), drafter.name.c_str(), number(drafter.verifiedTokens),
                 number(drafter.acceptedTokens));
    std::string positions;
    for (size_t i = 0; i < drafter.judgedAt.size() && drafter.judgedAt[i] > 0; ++i)
      positions += " " + std::to_string(100 * drafter.acceptedAt[i] / drafter.judgedAt[i]);
    if (!positions.empty())
      std::fprintf(stderr, "         accepted by position, %%:%s\n", positions.c_str());
    std::string matches;
    for (const auto &[least, match] : drafter.byMatch)
      matches += (matches.empty() ? " " : ", ") + std::to_string(least) + ": " +
                 std::to_string(100 * match.accepted / match.judged) + " (" +
                 std::to_string(std::lround(100 * match.learned)) + ")";
    if (!matches.empty())
      std::fprintf(stderr, "         first drafts accepted by tokens matched, %% (expected of the next):%s\n",
                   matches.c_str());
    if (drafter.verifiedTokens > 0)
      std::fprintf(stderr, "         %.1f tokens were promised of those verified\n", drafter.expectedTokens);
    if (drafter.failures > 0)
      std::fprintf(stderr, "         %lld failures, the last: %s\n", number(drafter.failures),
                   drafter.lastFailure.c_str());
  }
  std::fprintf(stderr,
               "         %lld of %lld steps verified drafts, %.2f tokens per step; drafting took %.1f %% of "
               "the time\n",
               number(s.speculatedSteps), number(s.steps),
               s.steps > 0 ? double(s.committedTokens) / double(s.steps) : 0,
               all > 0 ? 100 * s.draftSeconds / all : 0);
}

} // namespace

Status generate(const LanguageRequest &request, llm::LanguageModel &language) {
  int32_t sequences = request.prompts.empty() ? request.request.choices
                                              : std::min(request.engine.scheduling.sequences, kMostMeasured);
  DSPARK_ASSIGN_OR_RETURN(ChosenSpeculation chosen, makeSpeculation({.choice = request.speculate,
                                                                     .sharedTokens = request.sharedTokens,
                                                                     .sequences = sequences,
                                                                     .session = request.model.session},
                                                                    language));
  DSPARK_ASSIGN_OR_RETURN(auto engine,
                          serving::Engine::create(*language.model, language.tokenizer.get(), request.engine,
                                                  std::move(chosen.speculation)));
  Generator generator(request, language, *engine);
  Status status = request.isChat            ? generator.chat()
                  : request.prompts.empty() ? generator.prompt()
                                            : generator.prompts();
  if (engine->speculation() && chosen.areStepsMeasured)
    keepSteps(*engine->speculation(), language, sequences);
  if (request.showsStatistics) {
    printStatistics(engine->statistics());
    printMemory(*language.model);
    if (engine->speculation())
      printSpeculation(engine->speculation()->statistics());
  }
  return status;
}

} // namespace dspark
