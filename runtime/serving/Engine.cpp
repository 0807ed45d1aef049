#include "runtime/serving/Engine.h"
#include "runtime/serving/Admission.h"
#include <algorithm>

namespace dspark::serving {
namespace {

double machineClock() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// A choice that has computed nothing yet. Its text continues the prompt's: a character may begin there.
std::unique_ptr<Sequence> newSequence(ActiveRequest &owner, int32_t choice, const llm::Tokenizer *tokenizer) {
  constexpr size_t kPromptTail = 8; // tokens; a character has at most four bytes
  const Request &request = owner.request;
  auto sequence = std::make_unique<Sequence>(request);
  sequence->owner = &owner;
  sequence->choice = choice;
  sequence->id = owner.firstSequence + uint64_t(choice);
  sequence->tokens = request.prompt;
  if (request.sampling.penalizes())
    sequence->counts.addPrompt(request.prompt);
  if (tokenizer) {
    sequence->detokenizer.emplace(*tokenizer);
    for (size_t i = request.prompt.size() - std::min(request.prompt.size(), kPromptTail);
         i < request.prompt.size(); ++i)
      sequence->detokenizer->push(request.prompt[i]);
  }
  return sequence;
}

} // namespace

StatusOr<std::unique_ptr<Engine>> Engine::create(llm::ForwardModel &model, const llm::Tokenizer *tokenizer,
                                                 EngineOptions options) {
  const llm::ModelFacts &facts = model.facts();
  SchedulerOptions &scheduling = options.scheduling;
  if (facts.vocabulary < 1 || facts.contextLength < 2 || facts.pageSize < 1 || facts.pages < 1 ||
      facts.maxRows < 1)
    return invalidArgument("the model has no vocabulary, context, cache pages or rows");
  if (scheduling.sequences < 1 || scheduling.rowsPerStep < 1 || scheduling.longestChunk < 1)
    return invalidArgument("sequences, rows per step and the longest chunk must be at least 1");
  scheduling.rowsPerStep = std::min(scheduling.rowsPerStep, facts.maxRows);
  if (scheduling.sequences > scheduling.rowsPerStep)
    return invalidArgument("each of " + std::to_string(scheduling.sequences) +
                           " sequences needs a row, a step has " + std::to_string(scheduling.rowsPerStep));
  if (tokenizer && tokenizer->vocabulary().size() > facts.vocabulary)
    return invalidArgument("the tokenizer has " + std::to_string(tokenizer->vocabulary().size()) +
                           " tokens, the model " + std::to_string(facts.vocabulary));
  if (!options.clock)
    options.clock = machineClock;
  return std::unique_ptr<Engine>(new Engine(model, tokenizer, std::move(options)));
}

Engine::Engine(llm::ForwardModel &model, const llm::Tokenizer *tokenizer, EngineOptions given)
    : model(model), options(std::move(given)), sampling{tokenizer, {}, {}},
      cache(model, {.sharePrefixes = options.sharePrefixes}), scheduler(cache, options.scheduling) {
  publishStatistics();
}

StatusOr<RequestId> Engine::submit(Request request) {
  DSPARK_ASSIGN_OR_RETURN(
      const int64_t mostTokens,
      admissibleOutput(request, model.facts(), sampling.tokenizer, options.scheduling.sequences));
  auto submitted = std::make_unique<ActiveRequest>();
  submitted->request = std::move(request);
  submitted->mostTokens = mostTokens;
  submitted->submitted = options.clock();
  return inbox.add(std::move(submitted), options.mostWaiting);
}

void Engine::cancel(RequestId id) { inbox.cancel(id); }

bool Engine::wait(std::chrono::milliseconds longest) { return unfinished || inbox.wait(longest); }

EngineStatistics Engine::statistics() const {
  const std::lock_guard lock(statisticsMutex);
  return published;
}

bool Engine::step() {
  const double began = options.clock(), inModel = counts.prefillSeconds + counts.decodeSeconds;
  receive();
  entries.clear();
  for (const auto &[sequence, rows] : scheduler.plan())
    entries.push_back({sequence, rows});
  for (const auto &[sequence, status] : scheduler.failures())
    endRequest(*sequence->owner, FinishReason::Failed, status);
  for (Entry &entry : entries)
    noteStart(*entry.sequence, began);
  run(entries);
  const bool worked = !entries.empty() || !ended.empty();
  ended.clear();
  counts.steps += int64_t(!entries.empty());
  counts.otherSeconds += options.clock() - began - (counts.prefillSeconds + counts.decodeSeconds - inModel);
  publishStatistics();
  return worked;
}

void Engine::receive() {
  Inbox::Contents contents = inbox.take();
  for (auto &request : contents.requests) {
    request->firstSequence = nextSequence;
    nextSequence += uint64_t(request->request.choices);
    request->unfinished = request->request.choices;
    request->statistics.promptTokens = int64_t(request->request.prompt.size());
    request->sequences.push_back(newSequence(*request, 0, sampling.tokenizer));
    request->sequences[0]->slots = request->request.choices;
    scheduler.add(request->sequences[0].get());
    ++counts.requests;
    active.emplace(request->id, std::move(request));
  }
  for (RequestId id : contents.cancelled)
    if (const auto place = active.find(id); place != active.end())
      endRequest(*place->second, FinishReason::Cancelled, Status::ok());
}

void Engine::noteStart(const Sequence &sequence, double now) {
  ActiveRequest &owner = *sequence.owner;
  if (owner.started)
    return;
  owner.started = true;
  owner.statistics.queueSeconds = now - owner.submitted;
  owner.statistics.cachedTokens = sequence.cache.length();
  inbox.leaveQueue();
}

// Computes the rows of the entries and finishes them. If the model fails, halves are tried until it is known
// whose rows it fails on: the others get what they would have got without those beside them.
void Engine::run(std::span<Entry> part) {
  batch.clear();
  int64_t prefillRows = 0;
  for (Entry &entry : part)
    if (entry.sequence->state == Sequence::State::Running) { // not ended by an earlier part
      entry.firstLogits = batch.add(*entry.sequence, entry.rows, {});
      prefillRows += entry.sequence->pending() > 1 ? entry.rows : 0;
    }
  if (batch.rows() == 0)
    return;
  const double began = options.clock();
  const auto logits = model.forward(batch.view());
  const double seconds = options.clock() - began, share = double(prefillRows) / double(batch.rows());
  counts.prefillSeconds += seconds * share;
  counts.decodeSeconds += seconds * (1 - share);
  if (logits.isOk()) {
    for (Entry &entry : part)
      if (entry.sequence->state == Sequence::State::Running)
        finishRows(entry, *logits);
  } else if (part.size() > 1) {
    run(part.first(part.size() / 2));
    run(part.subspan(part.size() / 2));
  } else {
    endRequest(*part[0].sequence->owner, FinishReason::Failed, logits.status());
  }
}

void Engine::finishRows(const Entry &entry, std::span<const float> logits) {
  Sequence &sequence = *entry.sequence;
  counts.prefillTokens += sequence.pending() > 1 ? entry.rows : 0;
  const size_t computed = size_t(sequence.cache.length() + entry.rows);
  if (computed < sequence.tokens.size() || sequence.slots > 1)
    cache.commit(sequence.cache, std::span(sequence.tokens).first(computed));
  if (computed < sequence.tokens.size())
    return;
  const size_t row = size_t(model.facts().vocabulary);
  const auto rows = logits.subspan(size_t(entry.firstLogits) * row, row);
  if (sequence.slots == 1)
    return drawTokens(sequence, rows);
  splitChoices(sequence);
  for (const auto &choice : sequence.owner->sequences)
    if (choice->state == Sequence::State::Running)
      drawTokens(*choice, rows);
}

// The prompt is computed: from here on each choice has pages of its own, shared until it writes.
void Engine::splitChoices(Sequence &first) {
  ActiveRequest &owner = *first.owner;
  for (int32_t choice = 1; choice < owner.request.choices; ++choice) {
    owner.sequences.push_back(newSequence(owner, choice, sampling.tokenizer));
    Sequence &added = *owner.sequences.back();
    added.cache = cache.fork(first.cache);
    scheduler.split(&first, &added);
  }
}

void Engine::drawTokens(Sequence &sequence, std::span<const float> rows) {
  const size_t known = sequence.tokens.size();
  SampledRows answers(sampling, sequence, rows, model.facts().vocabulary);
  const auto verdict = llm::verify({}, 0, answers);
  if (!verdict.isOk())
    return endRequest(*sequence.owner, FinishReason::Failed, verdict.status());
  cache.commit(sequence.cache, std::span(sequence.tokens).first(known + size_t(verdict->accepted)));
  deliver(sequence);
}

void Engine::deliver(Sequence &sequence, const Status &status) {
  ActiveRequest &owner = *sequence.owner;
  RequestStatistics &statistics = owner.statistics;
  const double elapsed = options.clock() - owner.submitted;
  if (statistics.outputTokens == 0)
    statistics.firstTokenSeconds = elapsed;
  statistics.outputTokens += int64_t(sequence.newTokens.size());
  counts.outputTokens += int64_t(sequence.newTokens.size());
  Output output{owner.id,        sequence.choice, sequence.newTokens, sequence.newText, sequence.newLogprobs,
                sequence.finish, status};
  if (sequence.finish != FinishReason::None) {
    scheduler.remove(&sequence);
    if (--owner.unfinished == 0) {
      statistics.totalSeconds = elapsed;
      output.statistics = &statistics;
    }
  }
  if (owner.request.receive)
    owner.request.receive(output);
  sequence.newTokens.clear();
  sequence.newText.clear();
  sequence.newLogprobs.clear();
  if (owner.unfinished == 0)
    retire(owner, sequence.finish);
}

void Engine::endRequest(ActiveRequest &request, FinishReason reason, const Status &status) {
  while (request.sequences.size() < size_t(request.request.choices)) // not split off yet
    request.sequences.push_back(newSequence(request, int32_t(request.sequences.size()), nullptr));
  for (const auto &sequence : request.sequences)
    if (sequence->finish == FinishReason::None) {
      sequence->finish = reason;
      deliver(*sequence, status);
    }
}

void Engine::retire(ActiveRequest &request, FinishReason reason) {
  if (!request.started)
    inbox.leaveQueue();
  request.started = true;
  counts.finished += reason == FinishReason::Stop || reason == FinishReason::Length;
  counts.cancelled += reason == FinishReason::Cancelled;
  counts.failed += reason == FinishReason::Failed;
  const auto place = active.find(request.id);
  ended.push_back(std::move(place->second));
  active.erase(place);
}

void Engine::publishStatistics() {
  EngineStatistics now = counts;
  now.preemptions = scheduler.preemptions();
  now.cachedTokens = scheduler.cachedTokens();
  now.running = int64_t(scheduler.runningSequences());
  now.waiting = int64_t(scheduler.waitingSequences());
  now.availablePages = cache.availablePages();
  now.totalPages = cache.totalPages();
  unfinished = !active.empty();
  const std::lock_guard lock(statisticsMutex);
  published = now;
}

Status Engine::checkPages() const {
  std::vector<const llm::CachedSequence *> sequences;
  for (const auto &[id, request] : active)
    for (const auto &sequence : request->sequences)
      sequences.push_back(&sequence->cache);
  return cache.check(sequences);
}

} // namespace dspark::serving
