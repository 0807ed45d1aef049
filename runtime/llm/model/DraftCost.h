// Measures a drafter: the table that speculation weighs its drafts by.
#pragma once
#include "runtime/llm/model/ForwardModel.h"
#include "runtime/llm/speculation/CostTable.h"
#include "runtime/llm/speculation/Drafter.h"
#include <functional>

namespace dspark::llm {

struct DraftCostOptions {
  int32_t sequences = 1;              // most sequences that run side by side
  int64_t context = 64;               // tokens of each sequence
  int repeats = 2;                    // of each draft, of which the fastest counts: noise only ever adds
  std::function<double()> clock = {}; // seconds that never go back; null: the machine's
};

struct DraftCost {
  CostTable table;
  double backlogSeconds = 0; // of a token that the drafter has to catch up with
};

/// Drafts for sequences of random tokens, which it forgets in the end. `facts` are the target's, whose pages
/// the requests name; a drafter that writes there leaves garbage, so this comes before anything is served.
/// Errors: those of the drafter and of CostTable::create.
StatusOr<DraftCost> measureDrafts(Drafter &drafter, const ModelFacts &facts,
                                  const DraftCostOptions &options = {});

} // namespace dspark::llm
