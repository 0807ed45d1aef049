// Tries a drafter: greedy decoding in which every draft is verified whole, so that what was accepted says how
// good the drafter is and how its confidences are to be calibrated.
#pragma once
#include "runtime/llm/model/ForwardModel.h"
#include "runtime/llm/speculation/Drafter.h"
#include "runtime/llm/speculation/TemperatureScaling.h"

namespace dspark::llm {

struct DraftTrialOptions {
  int64_t tokens = 48;  // decoded behind each prompt
  int32_t longest = 16; // drafts at once, if the drafter goes so far
};

struct DraftTrial {
  std::vector<CalibrationRecord> records; // of drafts that had a token at least
  int64_t rounds = 0, accepted = 0;       // steps of the model, and drafts that stood

  /// Drafts that stood, of a step.
  double meanAccepted() const { return rounds > 0 ? double(accepted) / double(rounds) : 0; }
  /// Share of first drafts that stood.
  double firstAccepted() const;
};

/// One prompt after the other, each in the cache's first pages, so that what these held is lost; prompts that
/// do not fit with what is decoded are left out. Errors: those of model and drafter.
StatusOr<DraftTrial> tryDrafter(ForwardModel &model, Drafter &drafter,
                                std::span<const std::vector<int32_t>> prompts,
                                const DraftTrialOptions &options = {});

/// Prompts out of the model's own mouth: `count` texts of `tokens` tokens, drawn at temperature 1 behind
/// `begin`. Errors: those of the model; a model that has not the pages.
StatusOr<std::vector<std::vector<int32_t>>> ownPrompts(ForwardModel &model, int32_t begin, int64_t count,
                                                       int64_t tokens);

} // namespace dspark::llm
