// Decides what each step computes: who gets how many rows, who is admitted, and who gives its pages back when
// they run out. Decoding sequences come first, one row each, then prompts in chunks, then those who wait.
#pragma once
#include "runtime/serving/Sequence.h"
#include <set>

namespace dspark::serving {

/// Who gives way when pages run out, among those of the lowest priority. It loses its pages and is computed
/// again later, mostly from the cache.
enum class Preemption {
  NewestFirst, // the oldest are never held up
  OldestFirst, // the newest are not, and an old one at most kMostPreemptions times
};

struct SchedulerOptions {
  int64_t rowsPerStep = 512;  // tokens of one step
  int64_t longestChunk = 512; // of one sequence's prompt in one step
  int32_t sequences = 64;     // that run side by side
  Preemption preemption = Preemption::NewestFirst;
};

/// Rows of a sequence in a step: the first of its pending tokens.
struct Scheduled {
  Sequence *sequence = nullptr;
  int64_t rows = 0;
};

/// Sequences are the caller's, and are removed before they go.
class Scheduler {
public:
  /// A sequence preempted so often gives way only if all others were, too.
  static constexpr int32_t kMostPreemptions = 3;

  Scheduler(llm::PageCache &cache, SchedulerOptions options) : cache(cache), options(options) {}

  /// A new sequence, at the end of those of its priority.
  void add(Sequence *sequence);
  /// `choice`, one of those that the running `from` stood for, goes on by itself.
  void split(Sequence *from, Sequence *choice);
  /// Finished or cancelled, in whatever state: its pages are given back.
  void remove(Sequence *sequence);

  /// Chooses the rows of the next step and reserves their pages. Empty if and only if nothing is left to do,
  /// or copying a page failed; whose copy failed is taken out and named in failures().
  const std::vector<Scheduled> &plan();
  const std::vector<std::pair<Sequence *, Status>> &failures() const { return failed; }

  /// Rows that the step has left, for drafts.
  int64_t rowsLeft() const { return budget; }
  int64_t preemptions() const { return preemptionCount; }
  /// Of those admitted, what they found in the cache.
  int64_t cachedTokens() const { return cachedCount; }
  size_t runningSequences() const { return running.size(); }
  size_t waitingSequences() const { return waiting.size(); }

private:
  using Order = std::set<Sequence *, ServedBefore>;

  void start(Sequence *sequence);
  void schedule(bool decoding);
  bool grant(Sequence *sequence);
  void admit();
  bool openPages(Sequence *sequence);
  bool makeWay(const Sequence *sequence);
  Sequence *victim() const;
  void preempt(Sequence *sequence);
  int64_t missingPages(const Sequence &sequence) const;
  int64_t sparePages() const;

  llm::PageCache &cache;
  SchedulerOptions options;
  Order running, waiting;
  int64_t slotsUsed = 0;
  int64_t budget = 0;
  std::vector<Scheduled> rows;
  std::vector<std::pair<Sequence *, Status>> failed;
  int64_t preemptionCount = 0, cachedCount = 0;
  bool preempted = false;                                   // in this step
  std::pair<const Sequence *, int64_t> refused{nullptr, 0}; // who last found how few spare pages
};

} // namespace dspark::serving
