#include "runtime/llm/model/DraftTrial.h"
#include "runtime/llm/sampling/Random.h"
#include <algorithm>
#include <cmath>
#include <numeric>

namespace dspark::llm {
namespace {

constexpr SequenceId kSequence = 1;

// One sequence in the cache's first pages.
class Decoding {
public:
  Decoding(ForwardModel &model, std::vector<int32_t> prompt) : tokens(std::move(prompt)), model(model) {
    pages.resize(size_t(model.facts().pages));
    std::iota(pages.begin(), pages.end(), 0);
  }

  static bool fits(const ModelFacts &facts, int64_t length) {
    return length <= facts.contextLength && length <= facts.pages * facts.pageSize;
  }

  /// Computes all pending tokens and `drafts` behind them; the logits of the last pending and of all drafts.
  StatusOr<std::span<const float>> step(std::span<const int32_t> drafts) {
    std::vector<int32_t> rows(tokens.begin() + computed, tokens.end());
    rows.insert(rows.end(), drafts.begin(), drafts.end());
    std::span<const float> logits;
    for (size_t first = 0; first < rows.size();) {
      const size_t count = std::min(rows.size() - first, size_t(model.facts().maxRows));
      const int32_t offsets[] = {0, int32_t(count)}, length = int32_t(size_t(computed) + first + count);
      std::vector<int32_t> wanted;
      for (size_t row = first; row < first + count; ++row)
        if (row + 1 + drafts.size() >= rows.size())
          wanted.push_back(int32_t(row - first));
      DSPARK_ASSIGN_OR_RETURN(logits, model.forward({std::span(rows).subspan(first, count),
                                                     offsets,
                                                     {&length, 1},
                                                     pages,
                                                     int64_t(pages.size()),
                                                     wanted}));
      first += count;
    }
    computed = int64_t(tokens.size());
    return logits;
  }

  /// What was accepted, and the token after it.
  void commit(std::span<const int32_t> accepted, int32_t next) {
    tokens.insert(tokens.end(), accepted.begin(), accepted.end());
    computed = int64_t(tokens.size());
    tokens.push_back(next);
  }

  std::vector<int32_t> tokens, pages;

private:
  ForwardModel &model;
  int64_t computed = 0;
};

int32_t likeliest(std::span<const float> logits) {
  return int32_t(std::ranges::max_element(logits) - logits.begin());
}

// Tokens of the logits by softmax's cumulation.
int32_t drawn(std::span<const float> logits, double uniform) {
  const float largest = *std::ranges::max_element(logits);
  double sum = 0;
  for (float logit : logits)
    sum += std::exp(double(logit - largest));
  double left = uniform * sum;
  for (size_t token = 0; token < logits.size(); ++token)
    if ((left -= std::exp(double(logits[token] - largest))) < 0)
      return int32_t(token);
  return likeliest(logits);
}

// Rounds of draft and verification behind one prompt.
Status decode(ForwardModel &model, Drafter &drafter, Decoding &text, const DraftTrialOptions &options,
              DraftTrial &trial) {
  const size_t vocabulary = size_t(model.facts().vocabulary),
               end = text.tokens.size() + size_t(options.tokens);
  const int32_t longest =
      int32_t(std::min<int64_t>({options.longest, drafter.longestDraft(), model.facts().maxRows - 1}));
  size_t told = 0;
  DSPARK_ASSIGN_OR_RETURN(std::span<const float> logits, text.step({}));
  text.commit({}, likeliest(logits));
  while (text.tokens.size() < end) {
    DSPARK_RETURN_IF_ERROR(drafter.append(kSequence, std::span<const int32_t>(text.tokens).subspan(told)));
    told = text.tokens.size();
    const DraftRequest request{kSequence, longest, nullptr, text.pages};
    Draft draft;
    DSPARK_RETURN_IF_ERROR(drafter.propose({&request, 1}, {&draft, 1}));
    DSPARK_ASSIGN_OR_RETURN(logits, text.step(draft.tokens));
    const auto answer = [&](size_t row) { return likeliest(logits.subspan(row * vocabulary, vocabulary)); };
    size_t accepted = 0;
    while (accepted < draft.tokens.size() && answer(accepted) == draft.tokens[accepted])
      ++accepted;
    text.commit(std::span<const int32_t>(draft.tokens).first(accepted), answer(accepted));
    ++trial.rounds;
    trial.accepted += int64_t(accepted);
    const int32_t judged = int32_t(std::min(accepted + 1, draft.tokens.size()));
    if (!draft.tokens.empty())
      trial.records.push_back({std::move(draft.confidence), judged, int32_t(accepted)});
  }
  return Status::ok();
}

} // namespace

double DraftTrial::firstAccepted() const {
  const auto count = std::ranges::count_if(records, [](const auto &record) { return record.accepted > 0; });
  return records.empty() ? 0 : double(count) / double(records.size());
}

StatusOr<DraftTrial> tryDrafter(ForwardModel &model, Drafter &drafter,
                                std::span<const std::vector<int32_t>> prompts,
                                const DraftTrialOptions &options) {
  DraftTrial trial;
  for (const std::vector<int32_t> &prompt : prompts) {
    const int64_t most = int64_t(prompt.size()) + options.tokens + 2 * options.longest;
    if (prompt.empty() || !Decoding::fits(model.facts(), most))
      continue;
    Decoding text(model, prompt);
    DSPARK_RETURN_IF_ERROR(drafter.begin(kSequence));
    Status status = decode(model, drafter, text, options, trial);
    drafter.forget(kSequence);
    if (!status.isOk())
      return status;
  }
  return trial;
}

StatusOr<std::vector<std::vector<int32_t>>> ownPrompts(ForwardModel &model, int32_t begin, int64_t count,
                                                       int64_t tokens) {
  if (!Decoding::fits(model.facts(), tokens))
    return invalidArgument("prompts of " + std::to_string(tokens) + " tokens do not fit a model of " +
                           std::to_string(model.facts().pages) + " pages");
  std::vector<std::vector<int32_t>> prompts;
  for (int64_t i = 0; i < count; ++i) {
    Decoding text(model, {begin});
    while (int64_t(text.tokens.size()) < tokens) {
      DSPARK_ASSIGN_OR_RETURN(const std::span<const float> logits, text.step({}));
      const double number = uniform({0, uint32_t(i)}, uint64_t(text.tokens.size()), Purpose::Token);
      text.commit({}, drawn(logits, number));
    }
    prompts.push_back(std::move(text.tokens));
  }
  return prompts;
}

} // namespace dspark::llm
