#include "tools/dspark-rt/Speculate.h"
#include "runtime/llm/model/StepCostFile.h"
#include "runtime/llm/speculation/LookupDrafter.h"
#include "runtime/llm/speculation/ModelDrafter.h"
#include <iostream>

namespace dspark {
namespace {

constexpr int32_t kLongestLookup = 16, kLongestModelDraft = 8;

// The steps that an earlier run left, else measured ones.
StatusOr<llm::CostTable> stepsOf(llm::PlanModel &model, const llm::StepCostOptions &options) {
  const llm::StepCostFile file(model.session().program().file(), model.session().threads(), options);
  if (file.exists()) {
    auto known = file.load();
    if (known.isOk())
      return known;
    std::cerr << "dspark-rt: " << known.status().message() << "; steps are measured again\n";
  }
  return llm::measureSteps(model, options);
}

// A drafter that writes one token after another takes so many of its model's steps.
StatusOr<llm::CostTable> draftingCost(const llm::CostTable &steps, int32_t sequences) {
  std::vector<llm::CostPoint> points;
  for (const llm::CostPoint &point : llm::CostTable::pointsToMeasure(sequences, 0))
    for (int32_t drafts = 1; drafts <= kLongestModelDraft; ++drafts)
      points.push_back({point.sequences, drafts, drafts * steps.seconds(point.sequences, 0)});
  return llm::CostTable::create(std::move(points), llm::CostTable::Kind::Drafter);
}

StatusOr<llm::SpeculationSource> modelSource(const std::string &path, const llm::LanguageModel &language,
                                             const SessionOptions &session, int32_t sequences) {
  DSPARK_ASSIGN_OR_RETURN(auto file, PlanFile::open(path));
  DSPARK_ASSIGN_OR_RETURN(auto program, Program::create(std::move(file)));
  const llm::ModelFacts &target = language.model->facts();
  llm::PlanModelOptions options;
  options.session = session;
  options.cacheTokens = target.pages * target.pageSize;
  DSPARK_ASSIGN_OR_RETURN(auto model, llm::PlanModel::create(std::move(program), options));
  DSPARK_ASSIGN_OR_RETURN(llm::CostTable steps,
                          stepsOf(*model, {.sequences = sequences, .drafts = kLongestModelDraft}));
  llm::SpeculationSource source;
  DSPARK_ASSIGN_OR_RETURN(source.cost, draftingCost(steps, sequences));
  source.backlogSeconds = (steps.seconds(1, kLongestModelDraft) - steps.seconds(1, 0)) / kLongestModelDraft;
  DSPARK_ASSIGN_OR_RETURN(source.drafter, llm::ModelDrafter::create(std::move(model), target.vocabulary,
                                                                    {.longestDraft = kLongestModelDraft}));
  return source;
}

} // namespace

StatusOr<std::unique_ptr<llm::Speculation>> makeSpeculation(const std::string &choice,
                                                            llm::LanguageModel &language,
                                                            const SessionOptions &session,
                                                            int32_t sequences) {
  if (choice == "off")
    return std::unique_ptr<llm::Speculation>();
  std::vector<llm::SpeculationSource> sources(1);
  int32_t longest = kLongestLookup;
  if (choice == "auto" || choice == "lookup") {
    sources[0].drafter =
        std::make_unique<llm::LookupDrafter>(llm::LookupOptions{.longestDraft = kLongestLookup});
  } else {
    auto source = modelSource(choice, language, session, sequences);
    if (!source.isOk())
      return source.status().in("--speculate " + choice);
    sources[0] = std::move(*source);
    longest = kLongestModelDraft;
  }
  auto steps = stepsOf(*language.model, {.sequences = sequences, .drafts = longest});
  if (!steps.isOk() &&
      choice == "auto") // a machine so busy that more rows took no longer: nothing to decide by
    return std::unique_ptr<llm::Speculation>();
  if (!steps.isOk())
    return steps.status();
  return llm::Speculation::create(language.model->facts().vocabulary, std::move(*steps), std::move(sources));
}

void keepSteps(const llm::Speculation &speculation, llm::LanguageModel &language, int32_t sequences) {
  const Session &session = language.model->session();
  const llm::StepCostFile file(session.program().file(), session.threads(),
                               {.sequences = sequences, .drafts = speculation.longestDraft()});
  if (file.path().empty())
    return;
  if (Status saved = file.save(speculation.steps()); !saved.isOk())
    std::cerr << "dspark-rt: " << saved.message() << "\n";
}

} // namespace dspark
