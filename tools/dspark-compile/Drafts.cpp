#include "tools/dspark-compile/Drafts.h"
#include "frontends/language/ImportLanguageModel.h"
#include "runtime/format/PlanEdit.h"
#include "runtime/llm/model/DraftTrial.h"
#include "runtime/llm/model/LanguageModel.h"
#include "runtime/llm/model/PlanDraft.h"
#include "tools/dspark-rt/Language.h"
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <set>
#include <span>

namespace dspark {
namespace {

using llm::DrafterRecord;

constexpr int kUsage = 1;
constexpr int64_t kPrompts = 8, kPromptTokens = 32, kTrialTokens = 2048;
// Choices of layers: all on a few prompts, the best third on all. Longer drafts hardly ever pay where a
// draft's token takes a third of a step.
constexpr size_t kFirstPrompts = 2, kKept = 3;
constexpr int64_t kChoiceDrafts = 6;

// Less than so much where the model's context is short.
int64_t within(const llm::ModelFacts &facts, int64_t tokens) {
  return std::max<int64_t>(1, std::min(tokens, facts.contextLength / 4));
}

CompileReport failed(std::string message) {
  CompileReport report;
  report.exitCode = kUsage;
  report.message = std::move(message);
  return report;
}

// A plan that is tried out, and texts to try it on.
struct Trial {
  llm::LanguageModel language;
  llm::DraftersSection section;
  std::vector<std::vector<int32_t>> prompts;
};

StatusOr<std::vector<std::vector<int32_t>>> promptsOf(llm::LanguageModel &language, const std::string &text) {
  const int64_t length = within(language.model->facts(), kPromptTokens);
  if (text.empty())
    return llm::ownPrompts(*language.model, std::max(language.tokenizer->spec().begin, 0), kPrompts, length);
  DSPARK_ASSIGN_OR_RETURN(const std::string content, readText(text));
  DSPARK_ASSIGN_OR_RETURN(const std::vector<int32_t> tokens, language.tokenizer->encode(content, {}));
  std::vector<std::vector<int32_t>> prompts;
  const int64_t pieces = std::min<int64_t>(kPrompts, std::ssize(tokens) / length);
  for (int64_t i = 0; i < pieces; ++i) { // spread over the whole text
    const auto first = tokens.begin() + i * (std::ssize(tokens) / pieces);
    prompts.emplace_back(first, first + length);
  }
  if (prompts.empty())
    return invalidArgument(text + " has " + std::to_string(tokens.size()) + " tokens, expected at least " +
                           std::to_string(length));
  return prompts;
}

StatusOr<Trial> openTrial(const std::string &plan, const CompileOptions &options, const std::string &text) {
  DSPARK_ASSIGN_OR_RETURN(auto file, PlanFile::open(plan));
  DSPARK_ASSIGN_OR_RETURN(auto program, Program::create(file));
  llm::PlanModelOptions model;
  model.session.threads = options.threads;
  model.cacheTokens = kTrialTokens;
  Trial trial;
  DSPARK_ASSIGN_OR_RETURN(trial.language, llm::LanguageModel::open(std::move(program), model));
  DSPARK_ASSIGN_OR_RETURN(trial.section, llm::decodeDrafters(file->drafters()));
  DSPARK_ASSIGN_OR_RETURN(trial.prompts, promptsOf(trial.language, text));
  return trial;
}

/// How much of a trial: the first prompts, drafts of so many tokens.
struct Extent {
  size_t prompts = kPrompts;
  int64_t longest = llm::DraftTrialOptions().longest;
};

StatusOr<llm::DraftTrial> run(Trial &trial, const DrafterRecord &record, int threads,
                              const Extent &extent = {}) {
  SessionOptions session;
  session.threads = threads;
  DSPARK_ASSIGN_OR_RETURN(auto drafter, llm::openDrafter(record, *trial.language.model, session, 0));
  const llm::ModelFacts &facts = trial.language.model->facts();
  llm::DraftTrialOptions options;
  options.tokens = within(facts, options.tokens);
  options.longest = int32_t(within(facts, extent.longest));
  const std::span prompts = std::span(trial.prompts).first(std::min(extent.prompts, trial.prompts.size()));
  return llm::tryDrafter(*trial.language.model, *drafter, prompts, options);
}

// Decoding reads every weight once: bytes stand for time.
double weightBytes(const Program &program) {
  double bytes = 0;
  for (const ValueInfo &value : program.values())
    bytes += double(value.bytes.size());
  return bytes;
}

// Tokens per time of plain decoding at the best length, where a draft of a token takes `share` of a step and
// verification nothing, as memory bounds it.
double predictedSpeed(const llm::DraftTrial &trial, double share, int32_t longest) {
  double best = 0;
  for (int32_t length = 1; length <= longest; ++length) {
    double accepted = 0;
    for (const llm::CalibrationRecord &record : trial.records)
      accepted += std::min(record.accepted, length);
    if (trial.rounds > 0)
      best = std::max(best, (1 + accepted / double(trial.rounds)) / (1 + length * share));
  }
  return best;
}

// A third, a half and two thirds of the layers: without the middle, the first ones, and evenly spread. The
// last layer is always there, for the output was trained on what it makes.
std::vector<std::vector<int64_t>> choicesOf(int64_t layers) {
  std::set<std::vector<int64_t>> choices;
  if (layers < 2)
    return {};
  for (const double share : {1.0 / 3, 1.0 / 2, 2.0 / 3}) {
    const int64_t kept = std::clamp<int64_t>(std::lround(double(layers) * share), 1, layers - 1);
    std::set<int64_t> ends, early = {layers - 1}, even;
    for (int64_t i = 0; i < kept; ++i) {
      ends.insert(i % 2 == 0 ? i / 2 : layers - 1 - i / 2);
      even.insert(kept == 1 ? layers - 1 : std::lround(double(i) * double(layers - 1) / double(kept - 1)));
      if (i + 1 < kept)
        early.insert(i);
    }
    ends.insert(layers - 1);
    for (const std::set<int64_t> &one : {ends, early, even})
      choices.emplace(one.begin(), one.end());
  }
  return {choices.begin(), choices.end()};
}

std::string percent(double share) { return std::to_string(std::lround(100 * share)) + " %"; }

// The layers that gain most, of a plan that holds all choices; none: no choice drafted at all.
StatusOr<std::vector<int64_t>> chooseLayers(const std::string &plan, const CompileOptions &options,
                                            const std::string &text) {
  DSPARK_ASSIGN_OR_RETURN(Trial trial, openTrial(plan, options, text));
  const double whole = weightBytes(trial.language.model->program());
  struct Choice {
    const DrafterRecord *record;
    double share = 0, speed = 0; // of a step; in the last trial
  };
  std::vector<Choice> choices;
  for (const DrafterRecord &record : trial.section.drafters) {
    DSPARK_ASSIGN_OR_RETURN(auto program,
                            Program::create(trial.language.model->program().sharedFile(), record.function));
    choices.push_back({&record, weightBytes(*program) / whole});
  }
  for (const size_t prompts : {kFirstPrompts, size_t(kPrompts)}) {
    for (Choice &choice : choices) {
      DSPARK_ASSIGN_OR_RETURN(const llm::DraftTrial result,
                              run(trial, *choice.record, options.threads, {prompts, kChoiceDrafts}));
      choice.speed = predictedSpeed(result, choice.share, choice.record->longestDraft);
    }
    std::ranges::stable_sort(choices, std::greater(), &Choice::speed);
    choices.resize(std::min(choices.size(), kKept));
  }
  return choices.empty() || choices.front().speed == 0 ? std::vector<int64_t>()
                                                       : choices.front().record->layers;
}

// Compiles a plan of all choices, tries them, and leaves the best in the options.
CompileReport chooseSelfDraft(CompileOptions &options, const std::string &text) {
  CompileOptions trial = options;
  trial.output = options.output + ".trial";
  trial.selfDrafts = choicesOf;
  CompileReport report = compileModel(trial);
  if (report.exitCode != 0)
    return report;
  StatusOr<std::vector<int64_t>> layers = chooseLayers(trial.output, options, text);
  std::error_code error;
  std::filesystem::remove(trial.output, error);
  if (!layers.isOk())
    return failed(layers.status().message());
  if (layers->empty())
    return failed(options.model + ": the model has too few layers to draft by some of them");
  options.selfDrafts = [chosen = *layers](int64_t) { return std::vector<std::vector<int64_t>>(1, chosen); };
  return report;
}

// Which row of a block gives the first draft is a convention that files do not always state, and the wrong
// one gives drafts that hardly ever stand. The other one is tried, too; true: it is so much better that it is
// meant.
StatusOr<bool> isOtherLayout(Trial &trial, const DrafterRecord &record, double accepted, int threads) {
  DrafterRecord other = record;
  other.anchorPredicts = !record.anchorPredicts;
  other.longestDraft = record.blockRows - !other.anchorPredicts;
  if (record.kind != DrafterRecord::Kind::Block || other.longestDraft < 1)
    return false;
  DSPARK_ASSIGN_OR_RETURN(const llm::DraftTrial result, run(trial, other, threads));
  return result.firstAccepted() > 2 * accepted + 0.05;
}

// Tries the plan's drafter and keeps in the plan what came of it; gives a sentence.
StatusOr<std::string> calibrate(const CompileOptions &options, const std::string &text) {
  llm::DraftersSection section;
  std::string summary;
  {
    DSPARK_ASSIGN_OR_RETURN(Trial trial, openTrial(options.output, options, text));
    section = trial.section;
    for (DrafterRecord &record : section.drafters) {
      DSPARK_ASSIGN_OR_RETURN(llm::DraftTrial result, run(trial, record, options.threads));
      DSPARK_ASSIGN_OR_RETURN(const bool isOther,
                              isOtherLayout(trial, record, result.firstAccepted(), options.threads));
      if (isOther) {
        record.anchorPredicts = !record.anchorPredicts;
        record.longestDraft = record.blockRows - !record.anchorPredicts;
        summary += record.name + ": against its configuration, the first draft is given by the " +
                   (record.anchorPredicts ? "anchor's row\n" : "row behind the anchor's\n");
        DSPARK_ASSIGN_OR_RETURN(result, run(trial, record, options.threads));
      }
      record.scaling = llm::TemperatureScaling::fit(result.records);
      record.acceptance = result.firstAccepted();
      summary += record.name + ": " + percent(record.acceptance) + " of first drafts accepted\n";
    }
  }
  const std::string json = llm::encodeDrafters(section);
  DSPARK_RETURN_IF_ERROR(
      replaceSection(options.output, SectionKind::Drafters, std::as_bytes(std::span(json))));
  return summary;
}

} // namespace

CompileReport compileWithDraft(CompileOptions options, const DraftRequest &request) {
  if (!language::isCheckpoint(options.model))
    return failed(options.model + ": --speculative-draft is for language models");
  if (request.draft != "self")
    options.draft = request.draft;
  else if (CompileReport report = chooseSelfDraft(options, request.text); report.exitCode != 0)
    return report;
  CompileReport report = compileModel(options);
  if (report.exitCode != 0)
    return report;
  StatusOr<std::string> summary = calibrate(options, request.text);
  if (!summary.isOk())
    return failed(summary.status().message());
  report.message = summary->substr(0, summary->size() - 1); // without the last line's end
  return report;
}

} // namespace dspark
