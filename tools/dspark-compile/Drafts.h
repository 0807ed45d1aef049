// What a language model's plan drafts with (--speculative-draft): compiles it in, tries it on text, and keeps
// in the plan what was measured.
#pragma once
#include "compiler/Pipeline/Compile.h"

namespace dspark {

struct DraftRequest {
  std::string draft = "auto"; // "auto", "lookup", "self", or the folder of a draft
  std::string text;           // file with text to try drafts on; "": what the model says by itself

  bool needsTrial() const { return draft != "auto" && draft != "lookup"; }
};

/// compileModel, with the drafter. Layers that draft by themselves are those, of some choices, that gain most
/// in the trial by what they leave out. The report's message says what the trial gave.
CompileReport compileWithDraft(CompileOptions options, const DraftRequest &request);

} // namespace dspark
