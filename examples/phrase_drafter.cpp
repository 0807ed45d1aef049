// A drafter of your own: it knows phrases that answers are likely to contain (licence headers, boilerplate,
// names of an API), and drafts the rest of one as soon as a text ends with its first tokens. The model checks
// every guess, so a phrase that does not come costs time and never changes an answer.
//
//   phrase_drafter PLAN PHRASE PROMPT
//
// continues PROMPT and says how many tokens were guessed. docs/speculation.md tells what a drafter must keep
// to.
#include "runtime/llm/model/LanguageModel.h"
#include "runtime/llm/model/StepCost.h"
#include "runtime/serving/Engine.h"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <unordered_map>

using namespace dspark;

namespace {

class PhraseDrafter : public llm::Drafter {
public:
  PhraseDrafter(std::vector<std::vector<int32_t>> phrases, size_t leastMatch)
      : phrases(std::move(phrases)), leastMatch(leastMatch) {}

  std::string_view name() const override { return "phrases"; }
  int32_t longestDraft() const override { return 16; }
  bool isFree() const override { return true; } // a few comparisons: asked in every step, needs no cost table

  Status begin(llm::SequenceId sequence) override {
    texts[sequence].clear();
    return Status::ok();
  }
  Status append(llm::SequenceId sequence, std::span<const int32_t> tokens) override {
    std::vector<int32_t> &text = texts[sequence];
    text.insert(text.end(), tokens.begin(), tokens.end());
    return Status::ok();
  }
  Status truncate(llm::SequenceId sequence, int64_t length) override {
    texts[sequence].resize(size_t(length));
    return Status::ok();
  }
  void forget(llm::SequenceId sequence) override { texts.erase(sequence); }

  // Tokens are a function of the text: Draft::drawnFrom stays empty. There is no confidence either, so that
  // acceptance is learned, by the number of tokens that matched.
  Status propose(std::span<const llm::DraftRequest> requests, std::span<llm::Draft> drafts) override {
    for (size_t i = 0; i < requests.size(); ++i)
      for (const std::vector<int32_t> &phrase : phrases) {
        const size_t known = matching(texts[requests[i].sequence], phrase);
        if (known < leastMatch || known <= size_t(drafts[i].match))
          continue;
        const size_t count = std::min(phrase.size() - known, size_t(requests[i].limit));
        drafts[i].tokens.assign(phrase.begin() + long(known), phrase.begin() + long(known + count));
        drafts[i].match = int32_t(known);
      }
    return Status::ok();
  }

private:
  // The most first tokens of the phrase that the text ends with, but not all of them.
  static size_t matching(const std::vector<int32_t> &text, const std::vector<int32_t> &phrase) {
    for (size_t count = std::min(text.size(), phrase.empty() ? 0 : phrase.size() - 1); count > 0; --count)
      if (std::equal(phrase.begin(), phrase.begin() + long(count), text.end() - long(count)))
        return count;
    return 0;
  }

  std::vector<std::vector<int32_t>> phrases;
  size_t leastMatch;
  std::unordered_map<llm::SequenceId, std::vector<int32_t>> texts;
};

template <typename T> T must(StatusOr<T> value) {
  if (!value.isOk()) {
    std::fprintf(stderr, "phrase_drafter: %s\n", value.status().message().c_str());
    std::exit(1);
  }
  return std::move(*value);
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 4)
    return std::fprintf(stderr, "usage: phrase_drafter PLAN PHRASE PROMPT\n"), 1;
  llm::LanguageModel language =
      must(llm::LanguageModel::open(must(Program::create(must(PlanFile::open(argv[1]))))));
  const llm::Tokenizer &tokenizer = *language.tokenizer;

  std::vector<llm::SpeculationSource> sources(1);
  const std::vector<std::vector<int32_t>> phrases = {must(tokenizer.encode(argv[2], {.addSpecial = false}))};
  sources[0].drafter = std::make_unique<PhraseDrafter>(phrases, /*leastMatch=*/2);
  auto speculation = must(llm::Speculation::create(
      language.model->facts().vocabulary, must(llm::measureSteps(*language.model)), std::move(sources)));
  auto engine = must(serving::Engine::create(*language.model, &tokenizer, {}, std::move(speculation)));

  serving::Request request;
  request.prompt = must(tokenizer.encode(argv[3], {}));
  request.maxTokens = 64;
  request.receive = [](const serving::Output &output) {
    std::fwrite(output.text.data(), 1, output.text.size(), stdout);
  };
  must(engine->submit(std::move(request)));
  while (engine->step())
    continue;
  const llm::DrafterStatistics &statistics = engine->speculation()->statistics().drafters[0];
  std::printf("\n%lld tokens were guessed, %lld of them right\n",
              static_cast<long long>(statistics.draftedTokens),
              static_cast<long long>(statistics.acceptedTokens));
}
