#include "tools/dspark-rt/Speculate.h"
#include "runtime/llm/model/DraftCost.h"
#include "runtime/llm/model/PlanDraft.h"
#include "runtime/llm/model/StepCostFile.h"
#include "runtime/llm/speculation/LookupDrafter.h"
#include "runtime/llm/speculation/ModelDrafter.h"
#include <iostream>

namespace dspark {
namespace {

using llm::DrafterRecord;

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

class Maker {
public:
  Maker(llm::LanguageModel &language, const SpeculateOptions &options)
      : language(language), options(options) {}

  void addLookup() {
    llm::SpeculationSource source;
    source.drafter = std::make_unique<llm::LookupDrafter>(
        llm::LookupOptions{.longestDraft = kLongestLookup, .sharedTokens = options.sharedTokens});
    sources.push_back(std::move(source));
  }

  /// A drafter of the plan's.
  Status addRecord(const DrafterRecord &record) {
    DSPARK_ASSIGN_OR_RETURN(auto drafter, llm::openDrafter(record, *language.model, options.session));
    return addMeasured(std::move(drafter), record.scaling);
  }

  /// The model of another plan.
  Status addPlan(const std::string &path) {
    DSPARK_ASSIGN_OR_RETURN(auto file, PlanFile::open(path));
    DSPARK_ASSIGN_OR_RETURN(auto program, Program::create(std::move(file)));
    const llm::ModelFacts &target = language.model->facts();
    llm::PlanModelOptions beside;
    beside.session = options.session;
    beside.cacheTokens = target.pages * target.pageSize;
    DSPARK_ASSIGN_OR_RETURN(auto model, llm::PlanModel::create(std::move(program), beside));
    DSPARK_ASSIGN_OR_RETURN(auto drafter, llm::ModelDrafter::create(std::move(model), target.vocabulary,
                                                                    {.longestDraft = kLongestModelDraft}));
    return addMeasured(std::move(drafter), {});
  }

  StatusOr<ChosenSpeculation> finish() {
    int32_t longest = 0;
    for (const llm::SpeculationSource &source : sources)
      longest = std::max(longest, source.drafter->longestDraft());
    auto steps =
        stepsOf(*language.model, {.sequences = options.sequences, .drafts = longest, .context = context()});
    // A machine so busy that more rows took no longer says nothing to decide by. Who names a drafter wants
    // it: a draft then counts as 2 % of a step, until steps have corrected that.
    ChosenSpeculation chosen{.speculation = nullptr, .areStepsMeasured = steps.isOk()};
    if (!steps.isOk() && options.choice != "auto")
      steps = llm::CostTable::create({{1, 0, 1e-3}, {1, 50, 2e-3}});
    DSPARK_RETURN_IF_ERROR(steps.status());
    DSPARK_ASSIGN_OR_RETURN(
        chosen.speculation,
        llm::Speculation::create(language.model->facts().vocabulary, std::move(*steps), std::move(sources)));
    return chosen;
  }

private:
  // Tokens that steps are measured with.
  int64_t context() const { return std::min<int64_t>(64, language.model->facts().contextLength / 2); }

  Status addMeasured(std::unique_ptr<llm::Drafter> drafter, const llm::TemperatureScaling &scaling) {
    DSPARK_ASSIGN_OR_RETURN(llm::DraftCost cost,
                            llm::measureDrafts(*drafter, language.model->facts(),
                                               {.sequences = options.sequences, .context = context()}));
    sources.push_back({std::move(drafter), std::move(cost.table), cost.backlogSeconds, scaling});
    return Status::ok();
  }

  llm::LanguageModel &language;
  const SpeculateOptions &options;
  std::vector<llm::SpeculationSource> sources;
};

} // namespace

StatusOr<ChosenSpeculation> makeSpeculation(const SpeculateOptions &options, llm::LanguageModel &language) {
  const std::string &choice = options.choice;
  DSPARK_ASSIGN_OR_RETURN(const llm::DraftersSection held,
                          llm::decodeDrafters(language.model->program().file().drafters()));
  const bool isAuto = choice == "auto";
  if (choice == "off" || (isAuto && !held.speculates))
    return ChosenSpeculation();
  Maker maker(language, options);
  if (isAuto || choice == "lookup")
    maker.addLookup();
  bool isHeld = false;
  for (const DrafterRecord &record : held.drafters)
    if (isAuto || record.name == choice) {
      DSPARK_RETURN_IF_ERROR(maker.addRecord(record).in("drafter " + record.name));
      isHeld = true;
    }
  if (!isAuto && choice != "lookup" && !isHeld)
    DSPARK_RETURN_IF_ERROR(maker.addPlan(choice).in("--speculate " + choice));
  auto chosen = maker.finish();
  if (!chosen.isOk() && isAuto)
    return ChosenSpeculation();
  return chosen;
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
