// What a caller asks of the engine, and what it gets back.
#pragma once
#include "runtime/llm/sampling/Logprobs.h"
#include "runtime/llm/sampling/SamplingParameters.h"
#include <functional>
#include <limits>
#include <optional>
#include <string>

namespace dspark::serving {

/// Never given twice by one engine.
using RequestId = uint64_t;

inline constexpr int32_t kMostTopLogprobs = 20;
inline constexpr size_t kMostStopStrings = 32, kLongestStopString = 1024; // bytes

enum class FinishReason {
  None, // goes on
  Stop, // a stop token or stop string
  Length,
  Cancelled,
  Failed, // Output::status says why
};

/// Seconds and tokens of one request, all its choices together.
struct RequestStatistics {
  int64_t promptTokens = 0;
  int64_t cachedTokens = 0; // of the prompt, found in the cache when it was first admitted
  int64_t outputTokens = 0;
  int64_t preemptions = 0;
  int64_t draftedTokens = 0, acceptedTokens = 0;
  double queueSeconds = 0;      // from submit to the first step it took part in
  double firstTokenSeconds = 0; // from submit
  double totalSeconds = 0;      // from submit
};

/// What one step adds to one choice. References are valid during the call only.
struct Output {
  RequestId request = 0;
  int32_t choice = 0;
  std::span<const int32_t> tokens;         // a stop token included
  std::string_view text;                   // whole characters; held back while it may become a stop string
  std::span<const llm::Logprobs> logprobs; // of each of the tokens, if asked for
  FinishReason finish = FinishReason::None;
  Status status;                                 // of what Failed
  const RequestStatistics *statistics = nullptr; // with the request's very last output
};

struct Request {
  std::vector<int32_t> prompt;
  llm::SamplingParameters sampling;
  int32_t choices = 1; // n: that many continuations of the prompt, which is computed once

  /// Of each choice; ends at the context length or the cache's size where that comes earlier.
  int64_t maxTokens = std::numeric_limits<int64_t>::max();
  std::vector<int32_t> stopTokens;      // beside the tokenizer's own
  bool ignoreTokenizerStops = false;    // its end-of-text tokens are tokens like others
  std::vector<std::string> stopStrings; // the text ends before the first of them
  bool includeStopString = false;       // ... or after it

  std::optional<llm::LogprobMode> logprobs;
  int32_t topLogprobs = 0;

  int32_t priority = 0; // higher ones are served first
  bool speculate = true;
  std::string cacheSalt; // pages are shared only between requests of the same

  /// Called from the thread that runs the steps, which it holds up. May submit and cancel.
  std::function<void(const Output &)> receive;
};

} // namespace dspark::serving
