#include "runtime/llm/speculation/SelfDrafter.h"
#include <algorithm>
#include <numeric>

namespace dspark::llm {

StatusOr<std::unique_ptr<SelfDrafter>> SelfDrafter::create(std::unique_ptr<ForwardModel> layers,
                                                           int32_t vocabulary, DraftLimits limits) {
  DSPARK_RETURN_IF_ERROR(checkVocabulary(layers->facts().vocabulary, vocabulary));
  if (limits.longestDraft < 1 || layers->facts().maxRows < 1)
    return invalidArgument("drafts of " + std::to_string(limits.longestDraft) + " tokens, batches of " +
                           std::to_string(layers->facts().maxRows) + " rows");
  return std::unique_ptr<SelfDrafter>(new SelfDrafter(std::move(layers), limits));
}

Status SelfDrafter::append(SequenceId sequence, std::span<const int32_t> tokens) {
  DSPARK_ASSIGN_OR_RETURN(std::vector<int32_t> * known, texts.find(sequence));
  known->insert(known->end(), tokens.begin(), tokens.end());
  return Status::ok();
}

Status SelfDrafter::truncate(SequenceId sequence, int64_t length) {
  DSPARK_ASSIGN_OR_RETURN(std::vector<int32_t> * known, texts.find(sequence));
  DSPARK_RETURN_IF_ERROR(texts.checkCut(sequence, std::ssize(*known), length));
  known->resize(size_t(length));
  return Status::ok();
}

Status SelfDrafter::propose(std::span<const DraftRequest> requests, std::span<Draft> drafts) {
  std::vector<Job> jobs;
  const int64_t size = layers->facts().pageSize;
  for (size_t i = 0; i < requests.size(); ++i) {
    const DraftRequest &request = requests[i];
    DSPARK_ASSIGN_OR_RETURN(const std::vector<int32_t> *tokens, texts.find(request.sequence));
    // The last draft needs no row, the last committed token does.
    const int64_t room = int64_t(request.pages.size()) * size - int64_t(tokens->size()) + 1;
    const int64_t limit = std::min({int64_t(request.limit), int64_t(limits.longestDraft), room});
    if (!tokens->empty() && limit > 0)
      jobs.push_back({{.request = &request,
                       .draft = &drafts[i],
                       .limit = int32_t(limit),
                       .leastSurvival = limits.leastSurvival},
                      tokens});
  }
  while (!jobs.empty()) {
    const std::span<Job> all = jobs;
    for (size_t first = 0; first < all.size(); first += size_t(layers->facts().maxRows))
      DSPARK_RETURN_IF_ERROR(
          growAll(all.subspan(first, std::min(all.size() - first, size_t(layers->facts().maxRows)))));
    std::erase_if(jobs, [](const Job &job) { return job.growth.isDone; });
  }
  return Status::ok();
}

/// A token more for each.
Status SelfDrafter::growAll(std::span<Job> jobs) {
  std::vector<int32_t> tokens, offsets(jobs.size() + 1), lengths, table, rows(jobs.size());
  size_t tablePages = 0;
  for (const Job &job : jobs)
    tablePages = std::max(tablePages, job.growth.request->pages.size());
  for (const Job &job : jobs) {
    const std::vector<int32_t> &drafted = job.growth.draft->tokens;
    const std::span<const int32_t> pages = job.growth.request->pages;
    tokens.push_back(drafted.empty() ? job.tokens->back() : drafted.back());
    lengths.push_back(int32_t(job.tokens->size() + drafted.size()));
    table.insert(table.end(), pages.begin(), pages.end());
    table.resize(lengths.size() * tablePages, 0);
  }
  std::iota(offsets.begin(), offsets.end(), 0);
  std::iota(rows.begin(), rows.end(), 0);
  DSPARK_ASSIGN_OR_RETURN(const std::span<const float> logits,
                          layers->forward({tokens, offsets, lengths, table, int64_t(tablePages), rows}));
  const size_t vocabulary = size_t(layers->facts().vocabulary);
  for (size_t i = 0; i < jobs.size(); ++i)
    DSPARK_RETURN_IF_ERROR(jobs[i].growth.extend(logits.subspan(i * vocabulary, vocabulary)));
  return Status::ok();
}

} // namespace dspark::llm
