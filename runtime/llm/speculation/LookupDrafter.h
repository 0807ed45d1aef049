// Drafts what followed the last time that the text ended as it ends now: prompt lookup (Saxena 2023) over the
// prompt and the output, by suffix automaton as in SuffixDecoding (2411.04975). Costs microseconds and pays
// where text is repeated: editing, summaries, quotations, code.
#pragma once
#include "runtime/llm/speculation/Drafter.h"
#include "runtime/llm/speculation/LookupStore.h"
#include "runtime/llm/speculation/SequenceTable.h"

namespace dspark::llm {

struct LookupOptions {
  int32_t leastMatch = 2;    // tokens that must have occurred before, at least 1
  int32_t longestDraft = 16; // tokens
  enum class Continuation {
    Latest,    // what followed the latest occurrence
    Likeliest, // what followed most often
  } continuation = Continuation::Latest;
  int64_t sharedTokens = 0; // of finished requests that are looked up too; 0: none
};

class LookupDrafter : public Drafter {
public:
  explicit LookupDrafter(LookupOptions options = {}) : options(options), store(options.sharedTokens) {}

  std::string_view name() const override { return "lookup"; }
  int32_t longestDraft() const override { return options.longestDraft; }
  bool isFree() const override { return true; }

  Status begin(SequenceId sequence) override { return texts.begin(sequence); }
  Status append(SequenceId sequence, std::span<const int32_t> tokens) override;
  Status truncate(SequenceId sequence, int64_t length) override;
  void forget(SequenceId sequence) override;
  Status propose(std::span<const DraftRequest> requests, std::span<Draft> drafts) override;

private:
  struct Text {
    SuffixAutomaton automaton;
    LookupStore::Place place;
  };

  LookupOptions options;
  LookupStore store;
  SequenceTable<Text> texts{*this};
};

} // namespace dspark::llm
