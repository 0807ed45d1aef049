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
                                                 EngineOptions options,
                                                 std::unique_ptr<llm::Speculation> speculation) {
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
  return std::unique_ptr<Engine>(new Engine(model, tokenizer, std::move(options), std::move(speculation)));
}

Engine::Engine(llm::ForwardModel &model, const llm::Tokenizer *tokenizer, EngineOptions given,
               std::unique_ptr<llm::Speculation> speculation)
    : model(model), options(std::move(given)), sampling{tokenizer},
      cache(model, {.sharePrefixes = options.sharePrefixes}), scheduler(cache, options.scheduling),
      drafting(std::move(speculation), sampling, cache) {
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
  const double began = options.clock();
  receive();
  planStep(began);
  const double planned = options.clock();
  drafting.plan(entries, scheduler.rowsLeft());
  const double drafted = options.clock(), modelBefore = counts.prefillSeconds + counts.decodeSeconds;
  forwardFailed = false;
  run(entries);
  const bool worked = !entries.empty() || !ended.empty();
  ended.clear();
  const double done = options.clock(), inModel = counts.prefillSeconds + counts.decodeSeconds - modelBefore;
  if (!forwardFailed)
    drafting.learn(entries, drafted - planned, done - drafted);
  counts.steps += int64_t(!entries.empty());
  counts.draftSeconds += drafted - planned;
  counts.otherSeconds += planned - began + done - drafted - inModel;
  publishStatistics();
  return worked;
}

void Engine::planStep(double now) {
  entries.clear();
  for (const auto &[sequence, rows] : scheduler.plan())
    entries.push_back({sequence, rows});
  for (const auto &[sequence, status] : scheduler.failures())
    endRequest(*sequence->owner, FinishReason::Failed, status);
  std::erase_if(entries, [](const StepEntry &entry) { return !entry.sequence->runs(); });
  for (const StepEntry &entry : entries)
    noteStart(*entry.sequence, now);
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

// Computes the rows of the entries and finishes them. If the model fails, halves are tried, and of one
// sequence the rows without drafts, until it is known whose rows it fails on: the others get what they would
// have got alone.
void Engine::run(std::span<StepEntry> part) {
  batch.clear();
  int64_t prefillRows = 0;
  for (StepEntry &entry : part)
    if (entry.sequence->runs()) { // not ended by an earlier part
      batch.add(entry);
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
    for (StepEntry &entry : part)
      if (entry.sequence->runs())
        finishRows(entry, *logits);
    return;
  }
  forwardFailed = true;
  if (part.size() > 1) {
    run(part.first(part.size() / 2));
    run(part.subspan(part.size() / 2));
  } else if (part[0].drafts > 0) {
    part[0].drafts = 0;
    run(part);
  } else {
    endRequest(*part[0].sequence->owner, FinishReason::Failed, logits.status());
  }
}

void Engine::finishRows(StepEntry &entry, std::span<const float> logits) {
  Sequence &sequence = *entry.sequence;
  counts.prefillTokens += sequence.pending() > 1 ? entry.rows : 0;
  const size_t computed = size_t(sequence.cache.length() + entry.rows);
  if (computed < sequence.tokens.size() || sequence.slots > 1)
    cache.commit(sequence.cache, std::span(sequence.tokens).first(computed));
  if (computed < sequence.tokens.size())
    return;
  const size_t row = size_t(model.facts().vocabulary);
  const auto rows = logits.subspan(size_t(entry.firstLogits) * row, row * size_t(1 + entry.drafts));
  if (sequence.slots == 1) {
    entry.verdict = drawTokens(sequence, entry, rows);
    return;
  }
  splitChoices(sequence);
  for (const auto &choice : sequence.owner->sequences)
    if (choice->runs())
      drawTokens(*choice, entry, rows);
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

// Draws the next tokens and keeps of the computed drafts what stands: the cache is rolled back by its length.
llm::Verdict Engine::drawTokens(Sequence &sequence, const StepEntry &entry, std::span<const float> rows) {
  static const llm::Draft kNone;
  const size_t known = sequence.tokens.size();
  SampledRows answers(sampling, sequence, rows, model.facts().vocabulary);
  const auto verdict = llm::verify(entry.draft ? *entry.draft : kNone, size_t(entry.drafts), answers);
  if (!verdict.isOk()) {
    endRequest(*sequence.owner, FinishReason::Failed, verdict.status());
    return {};
  }
  cache.commit(sequence.cache, std::span(sequence.tokens).first(known + size_t(verdict->accepted)));
  RequestStatistics &statistics = sequence.owner->statistics;
  statistics.draftedTokens += entry.drafts;
  statistics.acceptedTokens += verdict->accepted;
  counts.draftedTokens += entry.drafts;
  counts.acceptedTokens += verdict->accepted;
  if (!verdict->ended)
    drafting.tell(sequence);
  deliver(sequence);
  return *verdict;
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
    drafting.forget(sequence);
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
