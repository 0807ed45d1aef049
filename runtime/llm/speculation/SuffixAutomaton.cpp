#include "runtime/llm/speculation/SuffixAutomaton.h"
#include <algorithm>

namespace dspark::llm {
namespace {

constexpr int32_t kRoot = 0, kNone = -1;
constexpr int kCountedSuffixes = 32;
constexpr size_t kFirstSlots = 64; // a power of two, as all numbers of slots

} // namespace

SuffixAutomaton::SuffixAutomaton() : slots(kFirstSlots, kNone) { addState(0, kNone); }

int32_t SuffixAutomaton::addState(int32_t length, int32_t link) {
  states.push_back({length, link, kNone, kNone, 0});
  return int32_t(states.size()) - 1;
}

size_t SuffixAutomaton::slotOf(int32_t source, int32_t token) const {
  uint64_t key = uint64_t(uint32_t(source)) << 32 | uint32_t(token);
  key = (key ^ (key >> 29)) * 0xbf58476d1ce4e5b9; // spreads neighbouring states and tokens
  size_t slot = size_t(key >> 32) & (slots.size() - 1);
  while (slots[slot] != kNone &&
         (edges[size_t(slots[slot])].source != source || edges[size_t(slots[slot])].token != token))
    slot = (slot + 1) & (slots.size() - 1);
  return slot;
}

int32_t SuffixAutomaton::findEdge(int32_t source, int32_t token) const {
  return slots[slotOf(source, token)];
}

void SuffixAutomaton::growSlots() {
  slots.assign(2 * slots.size(), kNone);
  for (size_t e = 0; e < edges.size(); ++e)
    slots[slotOf(edges[e].source, edges[e].token)] = int32_t(e);
}

void SuffixAutomaton::addEdge(int32_t source, int32_t token, int32_t target) {
  if (2 * (edges.size() + 1) > slots.size())
    growSlots();
  const size_t slot = slotOf(source, token);
  edges.push_back({source, token, target, states[size_t(source)].firstEdge});
  slots[slot] = states[size_t(source)].firstEdge = int32_t(edges.size()) - 1;
}

/// The target of an edge holds substrings that cannot be reached over it; those that can become a state of
/// their own, which is returned.
int32_t SuffixAutomaton::split(int32_t source, int32_t edge) {
  const int32_t token = edges[size_t(edge)].token, whole = edges[size_t(edge)].target;
  const int32_t part = addState(states[size_t(source)].length + 1, states[size_t(whole)].link);
  states[size_t(part)].latestEnd = states[size_t(whole)].latestEnd;
  states[size_t(part)].occurrences = states[size_t(whole)].occurrences;
  for (int32_t e = states[size_t(whole)].firstEdge; e != kNone; e = edges[size_t(e)].next)
    addEdge(part, edges[size_t(e)].token, edges[size_t(e)].target);
  states[size_t(whole)].link = part;
  for (int32_t s = source; s != kNone; s = states[size_t(s)].link) {
    const int32_t e = findEdge(s, token);
    if (e == kNone || edges[size_t(e)].target != whole)
      break;
    edges[size_t(e)].target = part;
  }
  return part;
}

void SuffixAutomaton::append(int32_t token) {
  if (!tokens.empty())
    countOccurrence(int32_t(tokens.size()) - 1);
  tokens.push_back(token);
  const int32_t added = addState(int32_t(tokens.size()), kRoot);
  int32_t s = last, edge = kNone;
  for (; s != kNone && (edge = findEdge(s, token)) == kNone; s = states[size_t(s)].link)
    addEdge(s, token, added);
  if (s != kNone) {
    const int32_t target = edges[size_t(edge)].target;
    const bool isWhole = states[size_t(target)].length == states[size_t(s)].length + 1;
    states[size_t(added)].link = isWhole ? target : split(s, edge);
  }
  last = added;
}

/// Notes that the suffixes of the text end at `end`; called when a token follows, so that a suffix finds the
/// occurrence before its own.
void SuffixAutomaton::countOccurrence(int32_t end) {
  int32_t s = last;
  for (int i = 0; i < kCountedSuffixes && s > kRoot; ++i, s = states[size_t(s)].link) {
    states[size_t(s)].latestEnd = end;
    ++states[size_t(s)].occurrences;
  }
}

SuffixAutomaton::Match SuffixAutomaton::repeated() const {
  const int32_t link = states[size_t(last)].link;
  return link <= kRoot ? Match{} : Match{link, states[size_t(link)].length};
}

/// A state may have been split since the match was made: its shorter substrings are in the link now.
SuffixAutomaton::Match SuffixAutomaton::normalised(Match match) const {
  while (match.state > kRoot && match.length <= states[size_t(states[size_t(match.state)].link)].length)
    match.state = states[size_t(match.state)].link;
  return match;
}

SuffixAutomaton::Match SuffixAutomaton::extended(Match match, int32_t token) const {
  match = normalised(match);
  for (int32_t s = match.state; s != kNone; s = states[size_t(s)].link) {
    if (s != match.state)
      match.length = states[size_t(s)].length;
    const int32_t edge = findEdge(s, token);
    if (edge != kNone)
      return {edges[size_t(edge)].target, match.length + 1};
  }
  return {};
}

void SuffixAutomaton::latestContinuation(Match match, int32_t count, std::vector<int32_t> &out) const {
  match = normalised(match);
  const int32_t end = match.state > kRoot ? states[size_t(match.state)].latestEnd : kNone;
  if (end == kNone)
    return;
  const size_t first = out.size();
  for (size_t from = size_t(end) + 1; count > 0; ++from, --count)
    out.push_back(from < tokens.size() ? tokens[from] : out[first + from - tokens.size()]);
}

void SuffixAutomaton::likeliestContinuation(Match match, int32_t count, std::vector<int32_t> &out) const {
  match = normalised(match);
  int32_t s = match.length > 0 ? match.state : kNone;
  for (; s != kNone && count > 0; --count) {
    int32_t best = kNone;
    const auto rank = [&](int32_t e) {
      const State &target = states[size_t(edges[size_t(e)].target)];
      return std::pair(target.occurrences, target.latestEnd);
    };
    for (int32_t e = states[size_t(s)].firstEdge; e != kNone; e = edges[size_t(e)].next)
      if (best == kNone || rank(e) > rank(best))
        best = e;
    if (best == kNone)
      return;
    out.push_back(edges[size_t(best)].token);
    s = edges[size_t(best)].target;
  }
}

} // namespace dspark::llm
