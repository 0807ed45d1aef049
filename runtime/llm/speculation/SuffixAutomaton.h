// All substrings of a growing text of tokens: where the text's own end occurred before, and what followed.
// Blumer et al., "The smallest automaton recognizing the subwords of a text" (1985), built online: amortised
// constant time per token, at most two states and three edges each.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace dspark::llm {

class SuffixAutomaton {
public:
  SuffixAutomaton();

  void append(int32_t token);
  std::span<const int32_t> text() const { return tokens; }

  /// A substring of the text, by the state that holds it.
  struct Match {
    int32_t state = 0;
    int32_t length = 0; // in tokens; 0: nothing
  };

  /// The longest suffix of the text that also ends earlier in it.
  Match repeated() const;

  /// The longest suffix of (`match` followed by `token`) that occurs in the text: follows another text
  /// through this one. Matches stay valid while the text grows.
  Match extended(Match match, int32_t token) const;

  /// What followed the latest occurrence of the match, up to `count` tokens. Where the text ends it goes on
  /// into itself: a period repeats. That an occurrence is the latest is kept up for the 32 longest suffixes
  /// of each prefix of the text, so that a token costs constant time; older ones may be found beyond that.
  void latestContinuation(Match match, int32_t count, std::vector<int32_t> &out) const;

  /// The token that most often followed what the match holds, then the one that most often followed that, up
  /// to `count` tokens; of equals the latest. Ends where nothing ever followed. Counts occurrences within the
  /// same bound.
  void likeliestContinuation(Match match, int32_t count, std::vector<int32_t> &out) const;

private:
  struct State {
    int32_t length;      // of its longest substring
    int32_t link;        // to the state of the longest suffix that occurs in more places
    int32_t firstEdge;   // of a list; -1: none
    int32_t latestEnd;   // index of the last token of its latest occurrence but the text's own end
    int32_t occurrences; // that were counted
  };
  struct Edge {
    int32_t source, token, target;
    int32_t next; // of the same source
  };

  int32_t addState(int32_t length, int32_t link);
  void addEdge(int32_t source, int32_t token, int32_t target);
  int32_t findEdge(int32_t source, int32_t token) const; // index; -1: none
  size_t slotOf(int32_t source, int32_t token) const;
  void growSlots();
  int32_t split(int32_t source, int32_t edge);
  void countOccurrence(int32_t end);
  Match normalised(Match match) const;

  std::vector<int32_t> tokens;
  std::vector<State> states;
  std::vector<Edge> edges;
  std::vector<int32_t> slots; // open addressing by (source, token): index of an edge, -1: free
  int32_t last = 0;           // state of the whole text
};

} // namespace dspark::llm
