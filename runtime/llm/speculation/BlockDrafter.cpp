#include "runtime/llm/speculation/BlockDrafter.h"
#include "runtime/llm/speculation/Logistic.h"
#include <algorithm>

namespace dspark::llm {

BlockDrafter::BlockDrafter(std::string name, std::unique_ptr<BlockNetwork> network, float leastSurvival)
    : HiddenStateDrafter(network->facts(), network->facts().longestDraft()), ownName(std::move(name)),
      network(std::move(network)), limits{this->network->facts().longestDraft(), leastSurvival} {}

StatusOr<std::unique_ptr<BlockDrafter>> BlockDrafter::create(std::string name,
                                                             std::unique_ptr<BlockNetwork> network,
                                                             int32_t vocabulary, float leastSurvival) {
  const BlockNetwork::Facts &facts = network->facts();
  DSPARK_RETURN_IF_ERROR(checkVocabulary(facts.vocabulary, vocabulary));
  if (facts.longestDraft() < 1 || facts.blockRows > facts.maxRows ||
      facts.blockRows > facts.pages * facts.pageSize || facts.targetPageSize < 1)
    return invalidArgument("blocks of " + std::to_string(facts.blockRows) + " rows do not fit batches of " +
                           std::to_string(facts.maxRows) + " rows and " + std::to_string(facts.pages) +
                           " pages");
  return std::unique_ptr<BlockDrafter>(new BlockDrafter(std::move(name), std::move(network), leastSurvival));
}

Status BlockDrafter::propose(std::span<const DraftRequest> requests, std::span<Draft> drafts) {
  std::vector<Job> jobs;
  DSPARK_RETURN_IF_ERROR(open(requests, drafts, limits, jobs));
  for (Job &job : jobs) {
    job.state.resize(size_t(network->facts().headState));
    prepare(job, /*room=*/network->facts().blockRows, /*again=*/0);
  }
  std::vector<BlockEntry> entries;
  for (std::vector<Job *> batch = nextBatch(jobs, entries); !batch.empty();
       batch = nextBatch(jobs, entries)) {
    DSPARK_ASSIGN_OR_RETURN(const DraftRows rows, network->draft(entries));
    for (size_t i = 0; i < batch.size(); ++i)
      batch[i]->memory->written = entries[i].length;
    std::erase_if(batch, [](const Job *job) { return !job->hasBlock; });
    DSPARK_RETURN_IF_ERROR(network->facts().hasHead ? growByHead(batch, rows) : growBlocks(batch, rows));
    for (Job *job : batch)
      job->growth.isDone = true;
  }
  return Status::ok();
}

/// As much as a batch takes: hidden states, and blocks of sequences that have no more of these.
std::vector<BlockDrafter::Job *> BlockDrafter::nextBatch(std::vector<Job> &jobs,
                                                         std::vector<BlockEntry> &entries) const {
  const BlockNetwork::Facts &facts = network->facts();
  std::vector<Job *> batch;
  entries.clear();
  int64_t room = facts.maxRows;
  for (Job &job : jobs) {
    Memory &memory = *job.memory;
    const int64_t pending = job.pending(), rows = std::min(pending, room);
    job.hasBlock = !job.growth.isDone && room >= pending + facts.blockRows;
    if (job.growth.isDone || (rows == 0 && !job.hasBlock))
      continue;
    room -= rows + (job.hasBlock ? facts.blockRows : 0);
    entries.push_back({.slots = job.nextSlots(rows),
                       .length = memory.written + rows,
                       .pages = memory.pages,
                       .anchor = job.hasBlock ? memory.tokens.back() : -1,
                       .drafts = job.hasBlock ? job.growth.limit : 0});
    batch.push_back(&job);
  }
  return batch;
}

/// Without a head the rows do not depend on what was drawn before.
Status BlockDrafter::growBlocks(std::span<Job *const> jobs, const DraftRows &rows) {
  const size_t vocabulary = size_t(network->facts().vocabulary);
  size_t row = 0;
  for (Job *job : jobs) {
    DraftGrowth &growth = job->growth;
    for (const size_t end = row + size_t(growth.limit); row < end; ++row)
      if (!growth.isDone)
        DSPARK_RETURN_IF_ERROR(growth.extend(rows.logits.subspan(row * vocabulary, vocabulary)));
  }
  return Status::ok();
}

/// Position after position, of all blocks side by side.
Status BlockDrafter::growByHead(std::span<Job *const> jobs, const DraftRows &rows) {
  const BlockNetwork::Facts &facts = network->facts();
  const size_t vocabulary = size_t(facts.vocabulary), hidden = size_t(facts.hidden),
               width = size_t(facts.draftLogits);
  // The head's calls end the life of the network's rows.
  const std::vector<float> logits(rows.logits.begin(), rows.logits.end()),
      hiddens(rows.hidden.begin(), rows.hidden.end());
  for (int32_t k = 0; k < facts.longestDraft(); ++k) {
    std::vector<Job *> growing;
    std::vector<int32_t> previous;
    std::vector<float> base, inputs, states;
    size_t first = 0;
    for (Job *job : jobs) {
      const size_t row = first + size_t(k);
      first += size_t(job->growth.limit);
      if (job->growth.isDone)
        continue;
      const std::vector<int32_t> &drafted = job->growth.draft->tokens;
      growing.push_back(job);
      previous.push_back(drafted.empty() ? job->memory->tokens.back() : drafted.back());
      base.insert(base.end(), logits.begin() + long(row * width), logits.begin() + long((row + 1) * width));
      inputs.insert(inputs.end(), hiddens.begin() + long(row * hidden),
                    hiddens.begin() + long((row + 1) * hidden));
      states.insert(states.end(), job->state.begin(), job->state.end());
    }
    if (growing.empty())
      return Status::ok();
    DSPARK_ASSIGN_OR_RETURN(const HeadResult head, network->head({previous, base, inputs, states}));
    for (size_t i = 0; i < growing.size(); ++i) {
      const auto state = head.state.subspan(i * size_t(facts.headState), size_t(facts.headState));
      growing[i]->state.assign(state.begin(), state.end());
      const std::optional<float> confidence =
          head.confidence.empty() ? std::optional<float>() : sigmoid(head.confidence[i]);
      DSPARK_RETURN_IF_ERROR(
          growing[i]->growth.extend(head.logits.subspan(i * vocabulary, vocabulary), confidence));
    }
  }
  return Status::ok();
}

} // namespace dspark::llm
