// Which drafter drafts for a step, for which sequences and how long, before anything is drawn: the one of the
// highest predicted output per second, its own time included.
#pragma once
#include "runtime/llm/speculation/CostTable.h"
#include "runtime/llm/speculation/PrefixScheduler.h"

namespace dspark::llm {

/// A drafter whose drafts cost time.
struct DraftOption {
  std::vector<Estimates> expected;    // of each sequence, up to the most tokens it may draft; empty: none
  std::vector<double> backlogSeconds; // of each sequence: to catch up, spread over the steps that will profit
  const CostTable *cost = nullptr;
};

struct DraftChoice {
  int option = -1;             // index; -1: none of them, the free drafts stand
  int32_t length = 0;          // most tokens for each sequence
  std::vector<uint8_t> drafts; // of each sequence: whether the option drafts for it
  double draftSeconds = 0;
  double tokensPerSecond = 0;
};

/// `freeDrafts`: estimates of the drafts that cost nothing, by sequence. `verify`: seconds of the model's
/// step by drafts verified.
DraftChoice chooseDrafts(std::span<const Estimates> freeDrafts, std::span<const DraftOption> options,
                         const StepSeconds &verify);

} // namespace dspark::llm
