// Toys of the networks that read a target's hidden states. A token's "hidden state" is the token itself, at
// its slot of the target's cache, and what a network keeps in its own pages are such tokens again: a logit is
// right only if slots, pages and positions are.
#pragma once
#include "ToyForwardModel.h"
#include "runtime/llm/speculation/BlockDrafter.h"
#include "runtime/llm/speculation/Eagle3Drafter.h"

namespace dspark::llm::toy {

/// The target's cache, of which sequence s has pages of its own, from the last one down.
class TargetCache {
public:
  static constexpr int64_t kPageSize = 4, kPages = 24; // of a sequence

  explicit TargetCache(int64_t sequences)
      : slots(std::make_shared<Tokens>(size_t(sequences * kPages * kPageSize), -1)) {
    for (int64_t s = 0; s < sequences; ++s)
      for (int64_t page = kPages; page-- > 0;)
        pageLists.resize(size_t(sequences)), pageLists[size_t(s)].push_back(int32_t(s * kPages + page));
  }
  /// As a step leaves it: the hidden states of all tokens but the last.
  void write(size_t sequence, const Tokens &tokens) {
    for (size_t i = 0; i + 1 < tokens.size(); ++i)
      (*slots)[size_t(pageLists[sequence][i / kPageSize] * kPageSize) + i % kPageSize] = tokens[i];
  }
  std::span<const int32_t> pages(size_t sequence) const { return pageLists[sequence]; }

  std::shared_ptr<Tokens> slots;

private:
  std::vector<Tokens> pageLists;
};

/// Tokens in pages of 4.
class ToyPages {
public:
  explicit ToyPages(int64_t pages) : cache(size_t(pages * 4), -1) {}
  int32_t &at(std::span<const int32_t> pages, int64_t position) {
    return cache[size_t(pages[size_t(position / 4)] * 4 + position % 4)];
  }

private:
  Tokens cache;
};

inline void appendLogits(const Model &model, const Tokens &history, std::vector<float> &logits) {
  const Distribution next = model.next(history);
  for (int32_t v = 0; v < model.vocabulary; ++v)
    logits.push_back(std::log(probabilityOf(next, v) + 1e-9f));
}

inline DraftFacts toyFacts(const Model &model, int64_t pages, int64_t maxRows) {
  return {.vocabulary = model.vocabulary,
          .hidden = 2,
          .contextLength = 1 << 20,
          .pages = pages,
          .pageSize = 4,
          .targetPageSize = TargetCache::kPageSize,
          .maxRows = maxRows};
}

/// Drafts what its model says. Without a head all rows of a block are the first one's guess.
class ToyBlock : public BlockNetwork {
public:
  ToyBlock(Model model, std::shared_ptr<Tokens> hiddenStates, bool hasHead, bool anchorPredicts = true,
           int64_t pages = 64, int64_t maxRows = 24)
      : model(model), hiddenStates(std::move(hiddenStates)), own(pages) {
    static_cast<DraftFacts &>(networkFacts) = toyFacts(model, pages, maxRows);
    networkFacts.blockRows = 4 + !anchorPredicts;
    networkFacts.anchorPredicts = anchorPredicts;
    networkFacts.hasHead = hasHead;
    networkFacts.headState = hasHead;
    networkFacts.draftLogits = model.vocabulary;
  }

  const Facts &facts() const override { return networkFacts; }

  StatusOr<DraftRows> draft(std::span<const BlockEntry> entries) override {
    logits.clear();
    hidden.clear();
    int64_t rows = 0;
    for (const BlockEntry &entry : entries) {
      const int64_t count = std::ssize(entry.slots), before = entry.length - count;
      rows += count + (entry.anchor >= 0 ? networkFacts.blockRows : 0);
      contextRows += count;
      for (int64_t i = 0; i < count; ++i)
        own.at(entry.pages, before + i) = (*hiddenStates)[size_t(entry.slots[size_t(i)])];
      if (entry.anchor < 0)
        continue;
      Tokens history;
      for (int64_t i = 0; i < entry.length; ++i)
        history.push_back(own.at(entry.pages, i));
      EXPECT_EQ(std::count(history.begin(), history.end(), -1), 0) << "hidden states that were never written";
      for (int64_t row = 0; row < networkFacts.blockRows; ++row) // what a block leaves behind
        own.at(entry.pages, entry.length + row) = -1;
      history.push_back(entry.anchor);
      for (int32_t k = 0; k < entry.drafts; ++k) {
        appendLogits(model, history, logits);
        hidden.insert(hidden.end(), {history.size() > 1 ? float(history[history.size() - 2]) : -1, float(k)});
      }
    }
    EXPECT_LE(rows, networkFacts.maxRows);
    return DraftRows{logits, hidden};
  }

  // The state is the token before the previous one, plus 1.
  StatusOr<HeadResult> head(const HeadRows &rows) override {
    headLogits.clear();
    confidence.clear();
    state.clear();
    for (size_t i = 0; i < rows.previous.size(); ++i) {
      const bool isFirst = rows.hidden[2 * i + 1] == 0;
      EXPECT_EQ(isFirst, rows.state[i] == 0);
      const int32_t before = isFirst ? int32_t(rows.hidden[2 * i]) : int32_t(rows.state[i]) - 1;
      const Tokens history = before < 0 ? Tokens{rows.previous[i]} : Tokens{before, rows.previous[i]};
      appendLogits(model, history, headLogits);
      confidence.push_back(1.5f - rows.hidden[2 * i + 1] / 4 + float(rows.previous[i] % 2));
      state.push_back(float(rows.previous[i] + 1));
    }
    return HeadResult{headLogits, confidence, state};
  }

  int64_t contextRows = 0;

private:
  Model model;
  std::shared_ptr<Tokens> hiddenStates;
  ToyPages own;
  Facts networkFacts;
  std::vector<float> logits, hidden, headLogits, confidence, state;
};

/// Of its row (token, next token) it says what follows both, and its feature is the next token.
class ToyFeatures : public FeatureNetwork {
public:
  ToyFeatures(Model model, std::shared_ptr<Tokens> hiddenStates, int64_t pages = 64, int64_t maxRows = 8)
      : model(model), hiddenStates(std::move(hiddenStates)), own(pages),
        networkFacts(toyFacts(model, pages, maxRows)) {}

  const DraftFacts &facts() const override { return networkFacts; }

  StatusOr<DraftRows> draft(std::span<const FeatureEntry> entries) override {
    logits.clear();
    hidden.clear();
    int64_t rows = 0;
    bool isDrafting = false;
    for (const FeatureEntry &entry : entries) {
      const int64_t count = std::ssize(entry.tokens), before = entry.length - count;
      rows += count;
      isDrafting |= entry.slots.empty();
      EXPECT_EQ(isDrafting, entry.slots.empty()) << "rows with hidden states come first";
      int32_t feature = -1;
      for (int64_t i = 0; i < count; ++i) {
        feature =
            entry.slots.empty() ? int32_t(entry.feature[0]) : (*hiddenStates)[size_t(entry.slots[size_t(i)])];
        own.at(entry.pages, before + i) = feature;
      }
      contextRows += std::ssize(entry.slots);
      if (!entry.givesLogits)
        continue;
      Tokens history;
      for (int64_t i = 0; i < entry.length; ++i)
        history.push_back(own.at(entry.pages, i));
      EXPECT_EQ(std::count(history.begin(), history.end(), -1), 0) << "hidden states that were never written";
      history.push_back(entry.tokens.back());
      appendLogits(model, history, logits);
      hidden.insert(hidden.end(), {float(entry.tokens.back()), 0});
    }
    EXPECT_LE(rows, networkFacts.maxRows);
    return DraftRows{logits, hidden};
  }

  int64_t contextRows = 0;

private:
  Model model;
  std::shared_ptr<Tokens> hiddenStates;
  ToyPages own;
  DraftFacts networkFacts;
  std::vector<float> logits, hidden;
};

} // namespace dspark::llm::toy
