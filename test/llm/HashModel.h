// A language model for tests of what schedules models: two layers of hashes in place of attention. What a
// row's logits are depends on every bit that its pages hold, so a wrong page, a missing copy or a forgotten
// rollback changes the output. Rows are computed one by one: a row cannot depend on its neighbours in the
// batch.
#pragma once
#include "runtime/llm/model/ForwardModel.h"
#include <algorithm>
#include <functional>
#include <limits>
#include <random>
#include <set>

namespace dspark::llm {

class HashModel : public ForwardModel {
public:
  explicit HashModel(ModelFacts facts, uint64_t seed = 1)
      : modelFacts(facts), seed(seed), slots(size_t(facts.pages * facts.pageSize)) {
    std::mt19937_64 garbage(seed);
    for (Slot &slot : slots)
      slot = {garbage(), garbage()};
  }

  const ModelFacts &facts() const override { return modelFacts; }

  StatusOr<std::span<const float>> forward(const ForwardBatch &batch) override {
    ++forwards;
    rows += int64_t(batch.tokens.size());
    DSPARK_RETURN_IF_ERROR(checkBatch(batch));
    for (int32_t token : batch.tokens)
      if (token == failingToken)
        return Status(Code::Internal, "the model cannot compute token " + std::to_string(token));
    logits.clear();
    size_t wanted = 0;
    for (size_t s = 0; s + 1 < batch.queryOffsets.size(); ++s)
      for (int32_t row = batch.queryOffsets[s]; row < batch.queryOffsets[s + 1]; ++row) {
        const int64_t position = batch.sequenceLengths[s] - (batch.queryOffsets[s + 1] - row);
        const uint64_t state = compute(batch, s, position, batch.tokens[size_t(row)]);
        if (wanted < batch.logitRows.size() && batch.logitRows[wanted] == row) {
          ++wanted;
          appendLogits(state, batch.tokens[size_t(row)]);
        }
      }
    return std::span<const float>(logits);
  }

  /// Leaves garbage where the batch's rows have their keys and values.
  void scribble(const ForwardBatch &batch) {
    for (size_t s = 0; s + 1 < batch.queryOffsets.size(); ++s)
      for (int32_t row = batch.queryOffsets[s]; row < batch.queryOffsets[s + 1]; ++row)
        slot(batch, s, batch.sequenceLengths[s] - (batch.queryOffsets[s + 1] - row)) = {mix(uint64_t(row)),
                                                                                        1};
  }

  Status copyPage(int32_t from, int32_t to) override {
    if (failCopies)
      return {Code::Internal, "the page cannot be copied"};
    const auto begin = slots.begin() + from * modelFacts.pageSize;
    std::copy(begin, begin + modelFacts.pageSize, slots.begin() + to * modelFacts.pageSize);
    return Status::ok();
  }

  int32_t failingToken = -1; // forward fails where a row has it
  int32_t nanToken = -1;     // the logits of its rows hold a NaN
  bool failCopies = false;
  float spread = 8; // logits are in [0, spread)
  int64_t forwards = 0, rows = 0;

private:
  struct Slot {
    uint64_t first, second; // the "keys and values" of two layers
  };

  static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
  }

  Slot &slot(const ForwardBatch &batch, size_t sequence, int64_t position) {
    const int64_t page = position / modelFacts.pageSize;
    const int32_t number = batch.blockTable[sequence * size_t(batch.tablePages) + size_t(page)];
    return slots[size_t(number * modelFacts.pageSize + position % modelFacts.pageSize)];
  }

  // The second layer's entry depends on all before it, as a transformer's does.
  uint64_t compute(const ForwardBatch &batch, size_t sequence, int64_t position, int32_t token) {
    Slot &own = slot(batch, sequence, position);
    own.first = mix(seed ^ mix(uint64_t(token) << 32 | uint64_t(position)));
    uint64_t state = 0;
    for (int64_t i = 0; i <= position; ++i)
      state = mix(state ^ slot(batch, sequence, i).first);
    own.second = mix(state + 1);
    for (int64_t i = 0; i <= position; ++i)
      state = mix(state ^ slot(batch, sequence, i).second);
    return state;
  }

  void appendLogits(uint64_t state, int32_t token) {
    for (int32_t v = 0; v < modelFacts.vocabulary; ++v)
      logits.push_back(spread * float(mix(state + uint64_t(v)) >> 40) * 0x1p-24f);
    if (token == nanToken)
      logits.back() = std::numeric_limits<float>::quiet_NaN();
  }

  Status checkBatch(const ForwardBatch &batch) const {
    const auto bad = [](const char *what) { return invalidArgument(std::string("the batch's ") + what); };
    const size_t sequences = batch.sequenceLengths.size();
    if (batch.queryOffsets.size() != sequences + 1 || batch.queryOffsets[0] != 0 ||
        batch.queryOffsets.back() != int32_t(batch.tokens.size()) || batch.tokens.empty())
      return bad("offsets do not cover its rows");
    if (int64_t(batch.tokens.size()) > modelFacts.maxRows)
      return bad("rows are too many");
    if (batch.blockTable.size() != sequences * size_t(batch.tablePages))
      return bad("block table has another size");
    if (!std::is_sorted(batch.logitRows.begin(), batch.logitRows.end(), std::less_equal<>()))
      return bad("logit rows do not ascend");
    for (int32_t token : batch.tokens)
      if (token < 0 || token >= modelFacts.vocabulary)
        return bad("tokens are outside the vocabulary");
    std::multiset<int32_t> used, written;
    for (size_t s = 0; s < sequences; ++s) {
      const int64_t rows = batch.queryOffsets[s + 1] - batch.queryOffsets[s],
                    length = batch.sequenceLengths[s];
      if (rows < 1 || rows > length || length > modelFacts.contextLength)
        return bad("sequence lengths are wrong");
      const int64_t pages = (length + modelFacts.pageSize - 1) / modelFacts.pageSize;
      if (pages > batch.tablePages)
        return bad("block table is too narrow");
      for (int64_t page = 0; page < pages; ++page) {
        const int32_t number = batch.blockTable[s * size_t(batch.tablePages) + size_t(page)];
        if (number < 0 || number >= modelFacts.pages)
          return bad("block table names no page");
        used.insert(number);
        if ((page + 1) * modelFacts.pageSize > length - rows)
          written.insert(number);
      }
    }
    for (int32_t page : written)
      if (used.count(page) > 1)
        return bad("written pages are shared");
    return Status::ok();
  }

  ModelFacts modelFacts;
  uint64_t seed;
  std::vector<Slot> slots;
  std::vector<float> logits;
};

} // namespace dspark::llm
