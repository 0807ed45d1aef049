#include "runtime/llm/speculation/Eagle3Drafter.h"
#include <algorithm>

namespace dspark::llm {

Eagle3Drafter::Eagle3Drafter(std::unique_ptr<FeatureNetwork> network, DraftLimits limits)
    : HiddenStateDrafter(network->facts(), limits.longestDraft), network(std::move(network)), limits(limits) {
}

StatusOr<std::unique_ptr<Eagle3Drafter>> Eagle3Drafter::create(std::unique_ptr<FeatureNetwork> network,
                                                               int32_t vocabulary, DraftLimits limits) {
  const DraftFacts &facts = network->facts();
  DSPARK_RETURN_IF_ERROR(checkVocabulary(facts.vocabulary, vocabulary));
  if (facts.pages < 1 || facts.pageSize < 1 || facts.targetPageSize < 1 || facts.maxRows < 1 ||
      limits.longestDraft < 1)
    return invalidArgument("the draft has no pages, no rows, or no tokens to draft");
  return std::unique_ptr<Eagle3Drafter>(new Eagle3Drafter(std::move(network), limits));
}

Status Eagle3Drafter::propose(std::span<const DraftRequest> requests, std::span<Draft> drafts) {
  std::vector<Job> jobs;
  DSPARK_RETURN_IF_ERROR(open(requests, drafts, limits, jobs));
  // Each hidden state makes a row with the token after it; the last row gives the first draft.
  for (Job &job : jobs)
    prepare(job, /*room=*/job.growth.limit, /*again=*/1);
  const size_t vocabulary = size_t(network->facts().vocabulary), hidden = size_t(network->facts().hidden);
  std::vector<FeatureEntry> entries;
  for (std::vector<Job *> batch = nextBatch(jobs, entries); !batch.empty();
       batch = nextBatch(jobs, entries)) {
    DSPARK_ASSIGN_OR_RETURN(const DraftRows rows, network->draft(entries));
    size_t row = 0;
    for (size_t i = 0; i < batch.size(); ++i) {
      batch[i]->memory->written += int64_t(entries[i].slots.size());
      if (!entries[i].givesLogits)
        continue;
      const auto feature = rows.hidden.subspan(row * hidden, hidden);
      batch[i]->feature.assign(feature.begin(), feature.end());
      DSPARK_RETURN_IF_ERROR(batch[i]->growth.extend(rows.logits.subspan(row * vocabulary, vocabulary)));
      ++row;
    }
  }
  return Status::ok();
}

/// As many rows of unfinished jobs as a batch takes, those with the target's hidden states first.
std::vector<Eagle3Drafter::Job *> Eagle3Drafter::nextBatch(std::vector<Job> &jobs,
                                                           std::vector<FeatureEntry> &entries) const {
  std::vector<Job *> batch;
  for (bool isDrafting : {false, true})
    for (Job &job : jobs)
      if (!job.growth.isDone && (job.pending() == 0) == isDrafting)
        batch.push_back(&job);
  entries.clear();
  int64_t room = network->facts().maxRows;
  for (const Job *job : batch) {
    const int64_t rows = std::min(std::max<int64_t>(job->pending(), 1), room);
    if (rows == 0)
      break;
    room -= rows;
    entries.push_back(entryOf(*job, rows));
  }
  batch.resize(entries.size());
  return batch;
}

FeatureEntry Eagle3Drafter::entryOf(const Job &job, int64_t rows) const {
  const Memory &memory = *job.memory;
  const std::vector<int32_t> &drafted = job.growth.draft->tokens;
  const int64_t pending = job.pending();
  FeatureEntry entry;
  entry.pages = memory.pages;
  entry.givesLogits = rows >= pending;
  if (pending > 0) {
    entry.slots = job.nextSlots(rows);
    entry.tokens = std::span<const int32_t>(memory.tokens).subspan(size_t(memory.written + 1), size_t(rows));
    entry.length = memory.written + rows;
  } else {
    entry.feature = job.feature;
    entry.tokens = std::span<const int32_t>(drafted).last(1);
    entry.length = memory.written + int64_t(drafted.size());
  }
  return entry;
}

} // namespace dspark::llm
