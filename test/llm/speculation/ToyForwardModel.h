// The toy model behind the interface of real ones: its "keys and values" are the tokens themselves, so a
// logit is right only if every earlier token of the sequence is in the pages that the block table names.
// The pages may be those of another model.
#pragma once
#include "ToyDecoding.h"
#include "runtime/llm/model/ForwardModel.h"
#include <memory>

namespace dspark::llm::toy {

class ForwardToy : public ForwardModel {
public:
  ForwardToy(Model model, int64_t pages, int64_t pageSize = 4, int64_t maxRows = 8)
      : ForwardToy(model, std::make_shared<Tokens>(size_t(pages * pageSize), -1), pageSize, maxRows) {}
  ForwardToy(Model model, std::shared_ptr<Tokens> slots, int64_t pageSize, int64_t maxRows)
      : model(model), cache(std::move(slots)) {
    modelFacts = {.vocabulary = model.vocabulary,
                  .contextLength = 1 << 20,
                  .pageSize = pageSize,
                  .pages = std::ssize(*cache) / pageSize,
                  .pageBytes = pageSize,
                  .maxRows = maxRows};
  }

  const ModelFacts &facts() const override { return modelFacts; }

  StatusOr<std::span<const float>> forward(const ForwardBatch &batch) override {
    rows += int64_t(batch.tokens.size());
    EXPECT_LE(int64_t(batch.tokens.size()), modelFacts.maxRows);
    if (failsAt == ++calls)
      return Status(Code::OutOfMemory, "the toy model was told to fail");
    logits.clear();
    size_t wanted = 0;
    for (size_t s = 0; s < batch.sequenceLengths.size(); ++s) {
      const int32_t from = batch.queryOffsets[s], to = batch.queryOffsets[s + 1];
      const int32_t first = batch.sequenceLengths[s] - (to - from);
      const auto at = [&](int32_t position) -> int32_t & {
        const int64_t page =
            batch.blockTable[s * size_t(batch.tablePages) + size_t(position / modelFacts.pageSize)];
        return (*cache)[size_t(page * modelFacts.pageSize + position % modelFacts.pageSize)];
      };
      for (int32_t row = from; row < to; ++row)
        at(first + row - from) = batch.tokens[size_t(row)];
      for (; wanted < batch.logitRows.size() && batch.logitRows[wanted] < to; ++wanted) {
        Tokens history;
        for (int32_t i = 0; i <= first + batch.logitRows[wanted] - from; ++i)
          history.push_back(at(i));
        const Distribution next = model.next(history);
        for (int32_t v = 0; v < model.vocabulary; ++v)
          logits.push_back(std::log(probabilityOf(next, v) + 1e-9f));
      }
    }
    return std::span<const float>(logits);
  }

  Status copyPage(int32_t, int32_t) override { return Status::ok(); }

  int64_t rows = 0, calls = 0, failsAt = -1;

private:
  Model model;
  ModelFacts modelFacts;
  std::shared_ptr<Tokens> cache;
  std::vector<float> logits;
};

/// Softmax at temperature 1, drawn by keyed numbers.
class Pipeline : public DraftPipeline {
public:
  Pipeline(uint64_t seed, size_t committed) : seed(seed), committed(committed) {}
  StatusOr<Distribution> distribution(std::span<const float> logits,
                                      std::span<const int32_t>) const override {
    Distribution q;
    float sum = 0;
    for (float logit : logits)
      sum += std::exp(logit);
    for (size_t v = 0; v < logits.size(); ++v)
      if (std::exp(logits[v]) > 1e-6f) {
        q.tokens.push_back(int32_t(v));
        q.probabilities.push_back(std::exp(logits[v]) / sum);
      }
    return q;
  }
  int32_t draw(const Distribution &q, std::span<const int32_t> drafted) const override {
    return drawByCumulation(q, keyed({seed, committed + drafted.size(), kDrafting}));
  }

private:
  uint64_t seed;
  size_t committed;
};

} // namespace dspark::llm::toy
