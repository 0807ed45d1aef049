#include "runtime/serving/Scheduler.h"
#include <algorithm>

namespace dspark::serving {

void Scheduler::add(Sequence *sequence) {
  sequence->state = Sequence::State::Waiting;
  waiting.insert(sequence);
}

void Scheduler::split(Sequence *from, Sequence *choice) {
  --from->slots;
  --slotsUsed;
  start(choice);
}

void Scheduler::start(Sequence *sequence) {
  sequence->state = Sequence::State::Running;
  running.insert(sequence);
  slotsUsed += sequence->slots;
}

void Scheduler::remove(Sequence *sequence) {
  if (running.erase(sequence) > 0)
    slotsUsed -= sequence->slots;
  waiting.erase(sequence);
  std::erase_if(rows, [&](const Scheduled &scheduled) { return scheduled.sequence == sequence; });
  if (refused.first == sequence)
    refused = {nullptr, 0};
  sequence->state = Sequence::State::Finished;
  sequence->cache.release();
}

const std::vector<Scheduled> &Scheduler::plan() {
  rows.clear();
  failed.clear();
  preempted = false;
  budget = options.rowsPerStep;
  schedule(/*decoding=*/true);
  schedule(/*decoding=*/false);
  if (!preempted) // what was just given up must not be taken by a newcomer
    admit();
  return rows;
}

void Scheduler::schedule(bool decoding) {
  const std::vector<Sequence *> inOrder(running.begin(), running.end());
  for (Sequence *sequence : inOrder)
    if (budget > 0 && sequence->state == Sequence::State::Running && (sequence->pending() == 1) == decoding)
      grant(sequence);
}

// Rows and pages for a running sequence; false: it had to give way itself, or failed. Others give way until
// its pages suffice: alone it always fits, as submit() has checked.
bool Scheduler::grant(Sequence *sequence) {
  const int64_t count = std::min({sequence->pending(), budget, options.longestChunk});
  while (true) {
    const auto reserved = cache.reserve(sequence->cache, count);
    if (!reserved.isOk()) {
      remove(sequence);
      failed.emplace_back(sequence, reserved.status());
      return false;
    }
    if (*reserved)
      break;
    Sequence *other = victim();
    preempt(other);
    if (other == sequence)
      return false;
  }
  rows.push_back({sequence, count});
  budget -= count;
  return true;
}

void Scheduler::admit() {
  while (!waiting.empty() && budget > 0) {
    Sequence *next = *waiting.begin();
    const bool fits = slotsUsed + next->slots <= options.sequences && openPages(next);
    if (!fits && makeWay(next))
      continue;
    if (!fits)
      return; // no overtaking: whoever waits for much gets it
    waiting.erase(waiting.begin());
    start(next);
    cachedCount += next->cache.length();
    grant(next);
  }
}

// Admitted is who finds room for all its tokens and the next one, beside what those who run still need for
// theirs. What it finds in the cache comes for free.
bool Scheduler::openPages(Sequence *sequence) {
  const int64_t spare = sparePages();
  if (!running.empty() && refused.first == sequence && spare <= refused.second)
    return false; // as before: need not look at the whole text again
  sequence->cache = cache.open(sequence->tokens, sequence->owner->request.cacheSalt);
  if (running.empty() || missingPages(*sequence) <= sparePages())
    return true;
  sequence->cache.release();
  refused = {sequence, spare};
  return false;
}

// Whoever waits with a higher priority takes the place of one that runs with a lower.
bool Scheduler::makeWay(const Sequence *sequence) {
  Sequence *other = running.empty() ? nullptr : victim();
  if (!other || other->owner->request.priority >= sequence->owner->request.priority)
    return false;
  preempt(other);
  return true;
}

Sequence *Scheduler::victim() const {
  const auto gives = [&](const Sequence *a, const Sequence *b) { // whether a gives way before b
    const int32_t left = a->owner->request.priority, right = b->owner->request.priority;
    if (left != right)
      return left < right;
    const bool spentA = a->preemptions >= kMostPreemptions, spentB = b->preemptions >= kMostPreemptions;
    if (spentA != spentB)
      return spentB;
    return options.preemption == Preemption::NewestFirst ? a->id > b->id : a->id < b->id;
  };
  return *std::min_element(running.begin(), running.end(), gives);
}

void Scheduler::preempt(Sequence *sequence) {
  const auto scheduled = std::find_if(rows.begin(), rows.end(),
                                      [&](const Scheduled &entry) { return entry.sequence == sequence; });
  if (scheduled != rows.end()) {
    budget += scheduled->rows;
    rows.erase(scheduled);
  }
  running.erase(sequence);
  slotsUsed -= sequence->slots;
  sequence->cache.release();
  ++sequence->preemptions;
  ++sequence->owner->statistics.preemptions;
  ++preemptionCount;
  preempted = true;
  add(sequence);
}

int64_t Scheduler::missingPages(const Sequence &sequence) const {
  const int64_t held = int64_t(sequence.cache.pages().size());
  return std::max<int64_t>(cache.pagesFor(sequence.length() + 1) - held, 0) + sequence.slots - 1;
}

int64_t Scheduler::sparePages() const {
  int64_t spare = cache.availablePages();
  for (const Sequence *sequence : running)
    spare -= missingPages(*sequence);
  return spare;
}

} // namespace dspark::serving
