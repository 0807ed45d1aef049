// Measures a model's steps: the table that speculation decides by.
#pragma once
#include "runtime/llm/model/ForwardModel.h"
#include "runtime/llm/speculation/CostTable.h"
#include <functional>

namespace dspark::llm {

/// Seconds of a clock that never goes back.
double machineClock();

struct StepCostOptions {
  int32_t sequences = 1;              // most sequences that run side by side
  int32_t drafts = 16;                // most drafts of one of them
  int64_t context = 64;               // tokens of each sequence
  bool isFine = false;                // measure every width that matters, not only enough for interpolation
  int repeats = 2;                    // of each step, of which the fastest counts: noise only ever adds
  std::function<double()> clock = {}; // seconds that never go back; null: the machine's
};

/// Runs steps of random tokens; what the cache held is lost, so this comes before anything is served. Errors:
/// those of the model and of CostTable::create; InvalidArgument if not one step fits the model.
StatusOr<CostTable> measureSteps(ForwardModel &model, const StepCostOptions &options = {});

} // namespace dspark::llm
