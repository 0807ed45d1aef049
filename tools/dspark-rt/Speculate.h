// Which drafters a run speculates with (--speculate), and the measured tables that decide when they pay.
#pragma once
#include "runtime/llm/model/LanguageModel.h"
#include "runtime/llm/speculation/Speculation.h"
#include <string>

namespace dspark {

/// `choice`: "auto" and "lookup" look the next tokens up in prompt and answer, "off" gives null, anything
/// else is the file of a plan with the same vocabulary, whose model drafts. Measures steps of up to
/// `sequences` sequences, if no earlier run has kept them, so it comes before anything is served. Errors:
/// those of the draft plan and of measuring.
StatusOr<std::unique_ptr<llm::Speculation>> makeSpeculation(const std::string &choice,
                                                            llm::LanguageModel &language,
                                                            const SessionOptions &session, int32_t sequences);

/// Keeps the model's steps, as the run has corrected them, for the next start.
void keepSteps(const llm::Speculation &speculation, llm::LanguageModel &language, int32_t sequences);

} // namespace dspark
