#include "runtime/llm/speculation/ModelDrafter.h"
#include "runtime/llm/speculation/Logistic.h"
#include <numeric>
#include <string>

namespace dspark::llm {
namespace {

/// Softmax's largest probability.
float largestProbability(std::span<const float> logits, float largest) {
  double sum = 0;
  for (float logit : logits)
    sum += std::exp(double(logit) - largest);
  return float(1 / sum);
}

} // namespace

ModelDrafter::ModelDrafter(std::unique_ptr<ForwardModel> model, ModelDrafterOptions options)
    : model(std::move(model)), options(options), freePages(size_t(this->model->facts().pages)) {
  std::iota(freePages.rbegin(), freePages.rend(), 0);
}

StatusOr<std::unique_ptr<ModelDrafter>>
ModelDrafter::create(std::unique_ptr<ForwardModel> model, int32_t vocabulary, ModelDrafterOptions options) {
  const ModelFacts &facts = model->facts();
  if (facts.vocabulary != vocabulary)
    return invalidArgument("the draft model has a vocabulary of " + std::to_string(facts.vocabulary) +
                           ", the model one of " + std::to_string(vocabulary));
  if (facts.pages < 1 || facts.pageSize < 1 || facts.maxRows < 1)
    return invalidArgument("the draft model has no pages or no rows");
  if (options.longestDraft < 1)
    return invalidArgument("drafts of " + std::to_string(options.longestDraft) + " tokens");
  return std::unique_ptr<ModelDrafter>(new ModelDrafter(std::move(model), options));
}

StatusOr<ModelDrafter::Memory *> ModelDrafter::find(SequenceId sequence) {
  const auto at = memories.find(sequence);
  if (at == memories.end())
    return invalidArgument("draft model: sequence " + std::to_string(sequence) + " was not begun");
  return &at->second;
}

Status ModelDrafter::begin(SequenceId sequence) {
  if (!memories.try_emplace(sequence).second)
    return invalidArgument("draft model: sequence " + std::to_string(sequence) + " was begun before");
  return Status::ok();
}

Status ModelDrafter::append(SequenceId sequence, std::span<const int32_t> tokens) {
  DSPARK_ASSIGN_OR_RETURN(Memory * memory, find(sequence));
  std::vector<int32_t> &speculated = memory->speculated;
  const size_t both = std::min(tokens.size(), speculated.size());
  const size_t equal = size_t(
      std::mismatch(tokens.begin(), tokens.begin() + long(both), speculated.begin()).first - tokens.begin());
  speculated.erase(speculated.begin(), speculated.begin() + long(equal));
  if (equal < tokens.size()) { // what was speculated beyond that did not come
    memory->written -= int64_t(speculated.size());
    speculated.clear();
  }
  memory->tokens.insert(memory->tokens.end(), tokens.begin(), tokens.end());
  return Status::ok();
}

Status ModelDrafter::truncate(SequenceId sequence, int64_t length) {
  DSPARK_ASSIGN_OR_RETURN(Memory * memory, find(sequence));
  if (length < 0 || length > int64_t(memory->tokens.size()))
    return invalidArgument("draft model: sequence " + std::to_string(sequence) + " has " +
                           std::to_string(memory->tokens.size()) + " tokens, not " + std::to_string(length));
  memory->speculated.clear();
  memory->tokens.resize(size_t(length));
  memory->written = std::min(memory->written, length);
  return Status::ok();
}

void ModelDrafter::forget(SequenceId sequence) {
  const auto at = memories.find(sequence);
  if (at == memories.end())
    return;
  release(at->second);
  memories.erase(at);
}

/// A step leaves one or two rows to compute: its last draft, if accepted, and the token after it.
int64_t ModelDrafter::backlog(SequenceId sequence) const {
  const auto at = memories.find(sequence);
  const int64_t pending = at == memories.end() ? 0 : int64_t(at->second.tokens.size()) - at->second.written;
  return std::max<int64_t>(pending - 2, 0);
}

void ModelDrafter::release(Memory &memory) {
  freePages.insert(freePages.end(), memory.pages.rbegin(), memory.pages.rend());
  memory.pages.clear();
  memory.speculated.clear();
  memory.written = 0;
}

bool ModelDrafter::takePagesOfOldest() {
  Memory *oldest = nullptr;
  for (auto &[sequence, memory] : memories)
    if (!memory.pages.empty() && memory.lastUse < uses && (!oldest || memory.lastUse < oldest->lastUse))
      oldest = &memory;
  if (oldest)
    release(*oldest);
  return oldest;
}

bool ModelDrafter::reserve(Memory &memory, int64_t tokens) {
  const ModelFacts &facts = model->facts();
  const size_t pages = size_t((tokens + facts.pageSize - 1) / facts.pageSize);
  if (tokens > facts.contextLength || pages > size_t(facts.pages))
    return false;
  while (memory.pages.size() < pages) {
    if (freePages.empty() && !takePagesOfOldest())
      return false;
    memory.pages.push_back(freePages.back());
    freePages.pop_back();
  }
  return true;
}

Status ModelDrafter::propose(std::span<const DraftRequest> requests, std::span<Draft> drafts) {
  ++uses;
  std::vector<Job> jobs;
  for (const DraftRequest &request : requests) {
    DSPARK_ASSIGN_OR_RETURN(Memory * memory, find(request.sequence));
    memory->lastUse = uses; // before any reserves: a sequence of this call loses no pages to another
    jobs.push_back({&request, &drafts[jobs.size()], memory});
  }
  for (Job &job : jobs) {
    Memory &memory = *job.memory;
    const int64_t committed = int64_t(memory.tokens.size());
    const int32_t limit = std::min(job.request->limit, options.longestDraft);
    job.isDone = limit <= 0 || committed == 0 || !reserve(memory, committed + limit);
    memory.speculated.clear();
    memory.written = std::min(memory.written, committed - 1); // the last row gives the first logits
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
    if (job.isDone || room == 0)
      continue;
    const int64_t pending =
        int64_t(job.memory->tokens.size() + job.draft->tokens.size()) - job.memory->written;
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
    const int64_t committed = int64_t(memory.tokens.size());
    for (int64_t i = memory.written; i < memory.written + run.rows; ++i)
      tokens.push_back(i < committed ? memory.tokens[size_t(i)]
                                     : run.job->draft->tokens[size_t(i - committed)]);
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
    const std::vector<int32_t> &drafted = run.job->draft->tokens;
    if (memory.written > int64_t(memory.tokens.size()))
      memory.speculated.assign(drafted.begin(),
                               drafted.begin() + (memory.written - int64_t(memory.tokens.size())));
    if (!run.givesLogits)
      continue;
    DSPARK_RETURN_IF_ERROR(extend(*run.job, logits.first(vocabulary)));
    logits = logits.subspan(vocabulary);
  }
  return Status::ok();
}

/// Drafts the next token of a job. Whether it is drafted at all depends on the tokens before it alone.
Status ModelDrafter::extend(Job &job, std::span<const float> logits) {
  Draft &draft = *job.draft;
  const auto largest = std::max_element(logits.begin(), logits.end());
  const float confidence = largestProbability(logits, *largest);
  if (!std::isfinite(confidence))
    return {Code::Internal, "draft model: logits that are not finite"};
  job.survival *= confidence;
  if (job.survival < options.leastSurvival) {
    job.isDone = true;
  } else if (!job.request->pipeline) {
    draft.tokens.push_back(int32_t(largest - logits.begin()));
  } else {
    DSPARK_ASSIGN_OR_RETURN(Distribution q, job.request->pipeline->distribution(logits, draft.tokens));
    draft.tokens.push_back(job.request->pipeline->draw(q, draft.tokens));
    draft.drawnFrom.push_back(std::move(q));
  }
  if (!job.isDone)
    draft.confidence.push_back(std::clamp(confidence, kLeastProbability, 1 - kLeastProbability));
  job.isDone |= int32_t(draft.tokens.size()) >= std::min(job.request->limit, options.longestDraft);
  const auto isCertain = [](const Distribution &q) { return q.tokens.size() == 1; };
  if (job.isDone && std::all_of(draft.drawnFrom.begin(), draft.drawnFrom.end(), isCertain))
    draft.drawnFrom.clear();
  return Status::ok();
}

} // namespace dspark::llm
