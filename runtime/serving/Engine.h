// Serves many requests with one model: continuous batching over a paged cache. Each step computes a ragged
// batch of decoded tokens, drafts and chunks of prompts, draws tokens, and delivers them. A request's output
// is a function of the request alone: not of its neighbours, chunks, preemptions, cache hits or deterministic
// drafts. docs/serving.md has the guarantees.
#pragma once
#include "runtime/serving/Drafting.h"
#include "runtime/serving/Inbox.h"
#include "runtime/serving/SampledRows.h"
#include "runtime/serving/Scheduler.h"
#include "runtime/serving/StepBatch.h"
#include <atomic>
#include <unordered_map>

namespace dspark::serving {

struct EngineOptions {
  SchedulerOptions scheduling = {};
  bool sharePrefixes = true;
  int64_t mostWaiting = 1024;         // requests; more are refused
  std::function<double()> clock = {}; // seconds that never go back; null: the machine's
};

struct EngineStatistics {
  int64_t steps = 0;
  int64_t requests = 0, finished = 0, cancelled = 0, failed = 0;
  int64_t prefillTokens = 0; // computed rows of prompts and of what was preempted
  int64_t cachedTokens = 0;  // that need not be computed
  int64_t outputTokens = 0;
  int64_t draftedTokens = 0, acceptedTokens = 0; // of drafts that were verified
  int64_t preemptions = 0;
  double prefillSeconds = 0, decodeSeconds = 0; // in the model, by rows where a step has both
  double draftSeconds = 0;                      // in drafters and the decision about drafts
  double otherSeconds = 0;                      // scheduling, sampling, delivery
  // Now:
  int64_t running = 0, waiting = 0; // sequences
  int64_t availablePages = 0, totalPages = 0;
};

class Engine {
public:
  /// `model` and `tokenizer` must outlive the engine; without a tokenizer outputs have tokens and no text,
  /// without speculation there are no drafts. Errors: options that contradict the model or each other.
  static StatusOr<std::unique_ptr<Engine>> create(llm::ForwardModel &model, const llm::Tokenizer *tokenizer,
                                                  EngineOptions options = {},
                                                  std::unique_ptr<llm::Speculation> speculation = nullptr);

  /// From any thread. Errors: InvalidArgument for what can never be served, Busy if too many wait.
  StatusOr<RequestId> submit(Request request);
  /// From any thread, in any state of the request, as often as one likes; unknown ids are ignored. Its last
  /// outputs come with the next step.
  void cancel(RequestId id);
  /// From any thread: until there is work, at most so long.
  bool wait(std::chrono::milliseconds longest);
  /// From any thread: as of the end of the latest step.
  EngineStatistics statistics() const;

  /// One step; one thread at a time. False: there was nothing to do. Errors fail the requests they concern,
  /// never the engine.
  bool step();

  /// Null without speculation. On the thread of the steps.
  const llm::Speculation *speculation() const { return drafting.get(); }

  /// Whether the cache's pages belong exactly to the unfinished sequences. Between steps.
  Status checkPages() const;

private:
  Engine(llm::ForwardModel &model, const llm::Tokenizer *tokenizer, EngineOptions options,
         std::unique_ptr<llm::Speculation> speculation);

  void receive();
  void planStep(double now);
  void noteStart(const Sequence &sequence, double now);
  void run(std::span<StepEntry> part);
  void finishRows(StepEntry &entry, std::span<const float> logits);
  void splitChoices(Sequence &first);
  llm::Verdict drawTokens(Sequence &sequence, const StepEntry &entry, std::span<const float> rows);
  void deliver(Sequence &sequence, const Status &status = {});
  void endRequest(ActiveRequest &request, FinishReason reason, const Status &status);
  void retire(ActiveRequest &request, FinishReason reason);
  void publishStatistics();

  llm::ForwardModel &model;
  EngineOptions options;
  SamplingContext sampling;
  llm::PageCache cache;
  Scheduler scheduler;
  Drafting drafting;
  StepBatch batch;
  Inbox inbox;
  uint64_t nextSequence = 1;
  std::unordered_map<RequestId, std::unique_ptr<ActiveRequest>> active;
  std::vector<std::unique_ptr<ActiveRequest>> ended; // in this step, which may still point to them
  std::vector<StepEntry> entries;
  bool forwardFailed = false; // in this step
  EngineStatistics counts;

  std::atomic<bool> unfinished{false};
  mutable std::mutex statisticsMutex;
  EngineStatistics published;
};

} // namespace dspark::serving
