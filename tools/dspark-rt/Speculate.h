// Which drafters a run speculates with (--speculate), and the measured tables that decide when they pay.
#pragma once
#include "runtime/llm/model/LanguageModel.h"
#include "runtime/llm/speculation/Speculation.h"
#include <string>

namespace dspark {

struct SpeculateOptions {
  std::string choice = "auto";
  int64_t sharedTokens = 0; // of finished requests that lookup searches, too
  int32_t sequences = 1;    // most that run side by side, for which steps are measured
  SessionOptions session = {};
};

struct ChosenSpeculation {
  std::unique_ptr<llm::Speculation> speculation; // null: none
  bool areStepsMeasured = true;                  // else they are assumed, as no measurement said enough
};

/// `choice`: "lookup" looks the next tokens up in prompt and answer, "auto" does that beside all drafters
/// that the plan holds, unless it was made without speculation; "off" gives null; the name of one of the
/// plan's drafters, or the file of another plan with the same vocabulary, whose model drafts. Measures steps,
/// if no earlier run has kept them, so it comes before anything is served. Errors: those of the drafters and
/// of measuring.
StatusOr<ChosenSpeculation> makeSpeculation(const SpeculateOptions &options, llm::LanguageModel &language);

/// Keeps the model's steps, measured and corrected by the run, for the next start.
void keepSteps(const llm::Speculation &speculation, llm::LanguageModel &language, int32_t sequences);

} // namespace dspark
