#include "runtime/llm/model/PlanDraft.h"
#include "runtime/llm/model/TableWidth.h"
#include "runtime/llm/speculation/SelfDrafter.h"
#include <algorithm>

namespace dspark::llm {
namespace {

constexpr const char *kHiddenStates = "hidden_states";

// What all drafts over the model's hidden states share; lends these to the function and makes its caches.
StatusOr<DraftFacts> share(const DrafterRecord &record, const PlanModel &model, PlanFunction &function) {
  const BorrowedTensor hiddenStates = model.cacheNamed(kHiddenStates);
  const std::string &path = model.program().file().path();
  if (!hiddenStates.data)
    return corruptFile(path + ": drafter '" + record.name +
                       "' reads hidden states that the model does not keep");
  const ModelFacts &target = model.facts();
  function.lend(kHiddenStates, hiddenStates);
  DSPARK_RETURN_IF_ERROR(function.makeCaches(target.pages, target.pageSize));
  return DraftFacts{.vocabulary = target.vocabulary,
                    .hidden = record.hidden,
                    .contextLength = target.contextLength,
                    .pages = target.pages,
                    .pageSize = target.pageSize,
                    .targetPageSize = target.pageSize,
                    .maxRows = target.maxRows};
}

void appendPages(std::span<const int32_t> pages, int64_t width, std::vector<int32_t> &table) {
  const size_t end = table.size() + size_t(width);
  table.insert(table.end(), pages.begin(),
               pages.begin() + std::min<std::ptrdiff_t>(width, std::ssize(pages)));
  table.resize(end, 0);
}

template <typename Entries> int64_t tableWidthOf(const Entries &entries) {
  size_t most = 0;
  for (const auto &entry : entries)
    most = std::max(most, entry.pages.size());
  return tableWidth(int64_t(most));
}

// Runs a function whose operands are lent, and reads its two results, of that many rows.
StatusOr<DraftRows> runRows(PlanFunction &function, int64_t rows, int64_t vocabulary, int64_t hidden) {
  DSPARK_RETURN_IF_ERROR(function.run());
  DraftRows result;
  DSPARK_ASSIGN_OR_RETURN(result.logits, function.output("logits", rows * vocabulary));
  DSPARK_ASSIGN_OR_RETURN(result.hidden, function.output("hidden", rows * hidden));
  return result;
}

} // namespace

StatusOr<std::unique_ptr<Drafter>> openDrafter(const DrafterRecord &record, const PlanModel &model,
                                               const SessionOptions &session, float leastSurvival) {
  const int32_t vocabulary = model.facts().vocabulary;
  switch (record.kind) {
  case DrafterRecord::Kind::Block: {
    DSPARK_ASSIGN_OR_RETURN(auto network, PlanBlockNetwork::open(record, model, session));
    DSPARK_ASSIGN_OR_RETURN(auto drafter,
                            BlockDrafter::create(record.name, std::move(network), vocabulary, leastSurvival));
    return std::unique_ptr<Drafter>(std::move(drafter));
  }
  case DrafterRecord::Kind::Eagle3: {
    DSPARK_ASSIGN_OR_RETURN(auto network, PlanFeatureNetwork::open(record, model, session));
    DSPARK_ASSIGN_OR_RETURN(auto drafter, Eagle3Drafter::create(std::move(network), vocabulary,
                                                                {.longestDraft = record.longestDraft,
                                                                 .leastSurvival = leastSurvival}));
    return std::unique_ptr<Drafter>(std::move(drafter));
  }
  case DrafterRecord::Kind::Self:
    break;
  }
  DSPARK_ASSIGN_OR_RETURN(auto layers, model.openFunction(record.function, session));
  DSPARK_ASSIGN_OR_RETURN(auto drafter, SelfDrafter::create(std::move(layers), vocabulary,
                                                            {.longestDraft = record.longestDraft,
                                                             .leastSurvival = leastSurvival}));
  return std::unique_ptr<Drafter>(std::move(drafter));
}

StatusOr<std::unique_ptr<PlanBlockNetwork>>
PlanBlockNetwork::open(const DrafterRecord &record, const PlanModel &model, const SessionOptions &session) {
  std::unique_ptr<PlanBlockNetwork> network(new PlanBlockNetwork);
  const auto &file = model.program().sharedFile();
  DSPARK_ASSIGN_OR_RETURN(network->block, PlanFunction::open(file, record.function, session));
  Facts &facts = network->networkFacts;
  DSPARK_ASSIGN_OR_RETURN(static_cast<DraftFacts &>(facts), share(record, model, *network->block));
  facts.blockRows = record.blockRows;
  facts.anchorPredicts = record.anchorPredicts;
  facts.hasHead = record.hasHead;
  facts.headState = record.headState;
  facts.draftLogits = record.hasHead ? record.draftLogits : facts.vocabulary;
  network->maskToken = record.maskToken;
  if (record.maskToken >= facts.vocabulary || record.headState < 0)
    return corruptFile(file->path() + ": drafter '" + record.name + "' masks with token " +
                       std::to_string(record.maskToken) + " of " + std::to_string(facts.vocabulary));
  if (record.hasHead) {
    DSPARK_ASSIGN_OR_RETURN(network->sequential,
                            PlanFunction::open(file, record.function + "_head", session));
  }
  return network;
}

void PlanBlockNetwork::Pieces::clear() {
  offsets.assign(1, 0);
  lengths.clear();
  table.clear();
}

void PlanBlockNetwork::Pieces::add(int64_t rows, int64_t length, std::span<const int32_t> pages,
                                   int64_t tablePages) {
  offsets.push_back(offsets.back() + int32_t(rows));
  lengths.push_back(int32_t(length));
  appendPages(pages, tablePages, table);
}

// Writes are of the context's rows of all sequences, then of all blocks.
void PlanBlockNetwork::layOut(std::span<const BlockEntry> entries) {
  const int64_t width = tableWidthOf(entries), rows = networkFacts.blockRows;
  writes.clear();
  blocks.clear();
  for (auto *list : {&slots, &contextPositions, &tokens, &positions, &wanted})
    list->clear();
  for (const BlockEntry &entry : entries) {
    const int64_t count = std::ssize(entry.slots);
    slots.insert(slots.end(), entry.slots.begin(), entry.slots.end());
    for (int64_t i = entry.length - count; i < entry.length; ++i)
      contextPositions.push_back(int32_t(i));
    writes.add(count, entry.length, entry.pages, width);
  }
  for (const BlockEntry &entry : entries) {
    if (entry.anchor < 0)
      continue;
    const int32_t first = int32_t(tokens.size()) + !networkFacts.anchorPredicts;
    for (int32_t k = 0; k < entry.drafts; ++k)
      wanted.push_back(first + k);
    for (int64_t row = 0; row < rows; ++row) {
      tokens.push_back(row == 0 ? entry.anchor : maskToken);
      positions.push_back(int32_t(entry.length + row));
    }
    writes.add(rows, entry.length + rows, entry.pages, width);
    blocks.add(rows, entry.length + rows, entry.pages, width);
  }
}

StatusOr<DraftRows> PlanBlockNetwork::draft(std::span<const BlockEntry> entries) {
  layOut(entries);
  const int64_t width = tableWidthOf(entries);
  block->lend("context_slots", slots);
  block->lend("context_positions", contextPositions);
  block->lend("tokens", tokens);
  block->lend("positions", positions);
  block->lend("write_offsets", writes.offsets);
  block->lend("write_lengths", writes.lengths);
  block->lend("write_table", DType::I32, writes.table.data(), {std::ssize(writes.lengths), width});
  block->lend("block_offsets", blocks.offsets);
  block->lend("block_lengths", blocks.lengths);
  block->lend("block_table", DType::I32, blocks.table.data(), {std::ssize(blocks.lengths), width});
  block->lend("logit_rows", wanted);
  return runRows(*block, std::ssize(wanted), networkFacts.draftLogits, networkFacts.hidden);
}

StatusOr<HeadResult> PlanBlockNetwork::head(const HeadRows &rows) {
  const int64_t count = std::ssize(rows.previous);
  sequential->lend("tokens", rows.previous);
  sequential->lend("logits", DType::F32, rows.logits.data(), {count, networkFacts.draftLogits});
  sequential->lend("hidden", DType::F32, rows.hidden.data(), {count, networkFacts.hidden});
  sequential->lend("state", DType::F32, rows.state.data(), {count, networkFacts.headState});
  DSPARK_RETURN_IF_ERROR(sequential->run());
  HeadResult result;
  DSPARK_ASSIGN_OR_RETURN(result.logits, sequential->output("logits", count * networkFacts.vocabulary));
  DSPARK_ASSIGN_OR_RETURN(result.confidence, sequential->output("confidence", count));
  DSPARK_ASSIGN_OR_RETURN(result.state, sequential->output("state", count * networkFacts.headState));
  return result;
}

StatusOr<std::unique_ptr<PlanFeatureNetwork>>
PlanFeatureNetwork::open(const DrafterRecord &record, const PlanModel &model, const SessionOptions &session) {
  std::unique_ptr<PlanFeatureNetwork> network(new PlanFeatureNetwork);
  DSPARK_ASSIGN_OR_RETURN(network->function,
                          PlanFunction::open(model.program().sharedFile(), record.function, session));
  DSPARK_ASSIGN_OR_RETURN(network->networkFacts, share(record, model, *network->function));
  return network;
}

StatusOr<DraftRows> PlanFeatureNetwork::draft(std::span<const FeatureEntry> entries) {
  const int64_t width = tableWidthOf(entries);
  for (auto *list : {&slots, &tokens, &positions, &lengths, &table, &wanted})
    list->clear();
  features.clear();
  offsets.assign(1, 0);
  for (const FeatureEntry &entry : entries) {
    slots.insert(slots.end(), entry.slots.begin(), entry.slots.end());
    features.insert(features.end(), entry.feature.begin(), entry.feature.end());
    tokens.insert(tokens.end(), entry.tokens.begin(), entry.tokens.end());
    for (int64_t i = entry.length - std::ssize(entry.tokens); i < entry.length; ++i)
      positions.push_back(int32_t(i));
    offsets.push_back(int32_t(tokens.size()));
    lengths.push_back(int32_t(entry.length));
    appendPages(entry.pages, width, table);
    if (entry.givesLogits)
      wanted.push_back(int32_t(tokens.size()) - 1);
  }
  const int64_t drafted = std::ssize(tokens) - std::ssize(slots);
  function->lend("context_slots", slots);
  function->lend("features", DType::F32, features.data(), {drafted, networkFacts.hidden});
  function->lend("tokens", tokens);
  function->lend("positions", positions);
  function->lend("query_offsets", offsets);
  function->lend("sequence_lengths", lengths);
  function->lend("block_table", DType::I32, table.data(), {std::ssize(lengths), width});
  function->lend("logit_rows", wanted);
  return runRows(*function, std::ssize(wanted), networkFacts.vocabulary, networkFacts.hidden);
}

} // namespace dspark::llm
