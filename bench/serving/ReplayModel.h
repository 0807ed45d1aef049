// A model that repeats answers that a real one has given, and tells how long that one's steps take: policies
// of speculation are compared on real texts without the noise of a busy machine, and in seconds.
#pragma once
#include "runtime/llm/model/ForwardModel.h"
#include "runtime/llm/speculation/CostTable.h"
#include <algorithm>
#include <unordered_map>

namespace dspark {

class ReplayModel : public llm::ForwardModel {
public:
  /// `steps`: of the real model.
  ReplayModel(const llm::ModelFacts &facts, llm::CostTable steps)
      : modelFacts(facts), steps(std::move(steps)) {
    modelFacts.maxRows = kMostRows; // so that prompts are not cut
  }

  /// A prompt and its answer. Prompts must differ.
  void know(std::span<const int32_t> prompt, std::span<const int32_t> answer) {
    Text text{{prompt.begin(), prompt.end()}, prompt.size()};
    text.tokens.insert(text.tokens.end(), answer.begin(), answer.end());
    texts.push_back(std::move(text));
  }
  /// That all steps would have taken.
  double seconds() const { return spent; }

  const llm::ModelFacts &facts() const override { return modelFacts; }
  StatusOr<std::span<const float>> forward(const llm::ForwardBatch &batch) override {
    const int32_t sequences = int32_t(batch.sequenceLengths.size());
    spent += steps.seconds(sequences, int32_t(batch.tokens.size()) - sequences);
    for (size_t place : set)
      logits[place] = 0;
    set.clear();
    logits.resize(std::max(logits.size(), batch.logitRows.size() * size_t(modelFacts.vocabulary)));
    size_t next = 0;
    for (size_t s = 0; s < batch.sequenceLengths.size(); ++s) {
      const int32_t begin = batch.queryOffsets[s], end = batch.queryOffsets[s + 1];
      const int32_t first = batch.sequenceLengths[s] - (end - begin);
      size_t &text = textOf[batch.blockTable[s * size_t(batch.tablePages)]];
      if (first == 0)
        text = find(batch.tokens.subspan(size_t(begin), size_t(end - begin)));
      for (; next < batch.logitRows.size() && batch.logitRows[next] < end; ++next)
        answer(next, texts[text], size_t(first + batch.logitRows[next] - begin) + 1);
    }
    return std::span<const float>(logits).first(next * size_t(modelFacts.vocabulary));
  }
  Status copyPage(int32_t, int32_t) override { return Status::ok(); }

private:
  static constexpr int64_t kMostRows = 1 << 14;

  struct Text {
    std::vector<int32_t> tokens;
    size_t prompt; // of them
  };

  size_t find(std::span<const int32_t> prompt) const {
    const auto is = [&](const Text &text) {
      return std::ranges::equal(std::span(text.tokens).first(text.prompt), prompt);
    };
    return size_t(std::ranges::find_if(texts, is) - texts.begin());
  }
  // Behind a draft that the text does not have any answer will do: it is not looked at.
  void answer(size_t row, const Text &text, size_t position) {
    const int32_t token = position < text.tokens.size() ? text.tokens[position] : 0;
    set.push_back(row * size_t(modelFacts.vocabulary) + size_t(token));
    logits[set.back()] = 1;
  }

  llm::ModelFacts modelFacts;
  llm::CostTable steps;
  std::vector<float> logits;
  std::vector<size_t> set; // places that are not 0
  std::vector<Text> texts;
  std::unordered_map<int32_t, size_t> textOf; // by a sequence's first page
  double spent = 0;
};

} // namespace dspark
