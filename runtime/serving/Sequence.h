// One choice of a request while the engine works on it.
#pragma once
#include "runtime/llm/cache/PageCache.h"
#include "runtime/llm/sampling/TokenCounts.h"
#include "runtime/llm/tokenizer/Detokenizer.h"
#include "runtime/serving/Request.h"
#include "runtime/serving/StopStrings.h"
#include <memory>

namespace dspark::serving {

struct Sequence;

/// A request and its choices, from submit to the last output.
struct ActiveRequest {
  RequestId id = 0;
  Request request;
  int64_t mostTokens = 0;                           // of each choice's output
  uint64_t firstSequence = 0;                       // Sequence::id of choice 0; those of the others follow
  std::vector<std::unique_ptr<Sequence>> sequences; // the first alone until the prompt is computed
  int32_t unfinished = 0;                           // choices, also those that have no sequence yet
  double submitted = 0;                             // seconds
  bool started = false;
  RequestStatistics statistics;
};

struct Sequence {
  enum class State { Waiting, Running, Finished };

  ActiveRequest *owner = nullptr;
  int32_t choice = 0;
  uint64_t id = 0; // also its place in the order of arrival; its drafter knows it by this
  State state = State::Waiting;

  std::vector<int32_t> tokens; // prompt and output
  llm::CachedSequence cache;   // those of them that have been computed
  llm::TokenCounts counts;     // kept where the request has penalties
  std::optional<llm::Detokenizer> detokenizer;
  StopStrings stops;

  /// Sequences that it stands for: the first choice also for the others until they are split off.
  int32_t slots = 1;
  int32_t preemptions = 0;
  int64_t toldTokens = 0; // that drafters know of; 0: they do not know the sequence

  // What this step adds, until it is delivered.
  std::vector<int32_t> newTokens;
  std::vector<llm::Logprobs> newLogprobs;
  std::string newText;
  FinishReason finish = FinishReason::None;

  explicit Sequence(const Request &request) : stops(request.stopStrings, request.includeStopString) {}

  bool runs() const { return state == State::Running; }
  int64_t length() const { return int64_t(tokens.size()); }
  int64_t promptTokens() const { return int64_t(owner->request.prompt.size()); }
  /// Tokens to compute before the next can be drawn. 1: it decodes; more: a prompt, or what was preempted.
  int64_t pending() const { return length() - cache.length(); }
};

/// Higher priority first, then first come, first served.
struct ServedBefore {
  bool operator()(const Sequence *a, const Sequence *b) const {
    const int32_t left = a->owner->request.priority, right = b->owner->request.priority;
    return left != right ? left > right : a->id < b->id;
  }
};

} // namespace dspark::serving
