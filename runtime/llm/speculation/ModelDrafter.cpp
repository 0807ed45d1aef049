#include "runtime/llm/speculation/ModelDrafter.h"
#include <algorithm>
#include <string>

namespace dspark::llm {
namespace {

// A step leaves its last draft to compute, if accepted, and the token after it.
constexpr int64_t kUsualPending = 2;

} // namespace

ModelDrafter::ModelDrafter(std::unique_ptr<ForwardModel> model, DraftLimits limits)
    : PagedDrafter({model->facts().pages, model->facts().pageSize, model->facts().contextLength},
                   kUsualPending),
      model(std::move(model)), limits(limits) {}

StatusOr<std::unique_ptr<ModelDrafter>> ModelDrafter::create(std::unique_ptr<ForwardModel> model,
                                                             int32_t vocabulary, DraftLimits limits) {
  const ModelFacts &facts = model->facts();
  DSPARK_RETURN_IF_ERROR(checkVocabulary(facts.vocabulary, vocabulary));
  if (facts.pages < 1 || facts.pageSize < 1 || facts.maxRows < 1)
    return invalidArgument("the draft model has no pages or no rows");
  if (limits.longestDraft < 1)
    return invalidArgument("drafts of " + std::to_string(limits.longestDraft) + " tokens");
  return std::unique_ptr<ModelDrafter>(new ModelDrafter(std::move(model), limits));
}

Status ModelDrafter::propose(std::span<const DraftRequest> requests, std::span<Draft> drafts) {
  std::vector<Job> jobs;
  DSPARK_RETURN_IF_ERROR(open(requests, drafts, limits, jobs));
  for (Job &job : jobs) {
    Memory &memory = *job.memory;
    const int32_t limit = job.growth.limit;
    job.growth.isDone = limit <= 0 || memory.length() == 0 || !reserve(memory, memory.length() + limit);
    memory.speculated.clear();
    memory.written = std::min(memory.written, memory.length() - 1); // the last row gives the first logits
  }
  for (std::vector<Run> runs = nextRuns(jobs); !runs.empty(); runs = nextRuns(jobs))
    DSPARK_RETURN_IF_ERROR(forward(runs));
  return Status::ok();
}

/// As many rows of unfinished jobs as a batch takes.
std::vector<ModelDrafter::Run> ModelDrafter::nextRuns(std::vector<Job> &jobs) const {
  std::vector<Run> runs;
  int64_t room = model->facts().maxRows;
  for (Job &job : jobs) {
    if (job.growth.isDone || room == 0)
      continue;
    const int64_t pending =
        job.memory->length() + int64_t(job.growth.draft->tokens.size()) - job.memory->written;
    const int64_t rows = std::min(pending, room);
    runs.push_back({&job, rows, rows == pending});
    room -= rows;
  }
  return runs;
}

Status ModelDrafter::forward(std::span<const Run> runs) {
  std::vector<int32_t> tokens, offsets{0}, lengths, table, logitRows;
  size_t tablePages = 0;
  for (const Run &run : runs)
    tablePages = std::max(tablePages, run.job->memory->pages.size());
  for (const Run &run : runs) {
    const Memory &memory = *run.job->memory;
    const int64_t committed = memory.length();
    for (int64_t i = memory.written; i < memory.written + run.rows; ++i)
      tokens.push_back(i < committed ? memory.tokens[size_t(i)]
                                     : run.job->growth.draft->tokens[size_t(i - committed)]);
    offsets.push_back(int32_t(tokens.size()));
    lengths.push_back(int32_t(memory.written + run.rows));
    table.insert(table.end(), memory.pages.begin(), memory.pages.end());
    table.resize(lengths.size() * tablePages, 0);
    if (run.givesLogits)
      logitRows.push_back(int32_t(tokens.size()) - 1);
  }
  DSPARK_ASSIGN_OR_RETURN(std::span<const float> logits,
                          model->forward({tokens, offsets, lengths, table, int64_t(tablePages), logitRows}));
  const size_t vocabulary = size_t(model->facts().vocabulary);
  for (const Run &run : runs) {
    Memory &memory = *run.job->memory;
    memory.written += run.rows;
    const std::vector<int32_t> &drafted = run.job->growth.draft->tokens;
    if (memory.written > memory.length())
      memory.speculated.assign(drafted.begin(), drafted.begin() + (memory.written - memory.length()));
    if (!run.givesLogits)
      continue;
    DSPARK_RETURN_IF_ERROR(run.job->growth.extend(logits.first(vocabulary)));
    logits = logits.subspan(vocabulary);
  }
  return Status::ok();
}

} // namespace dspark::llm
