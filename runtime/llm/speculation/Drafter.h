// What guesses the next tokens of sequences so that the model can check several of them in one step. A wrong
// guess costs time, never correctness: verification (Verification.h) keeps the model's own distribution.
// docs/speculation.md tells how to write one.
#pragma once
#include "runtime/base/Status.h"
#include "runtime/llm/sampling/Distribution.h"
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace dspark::llm {

/// The engine's name of a sequence. Never used again after the sequence was forgotten.
using SequenceId = uint64_t;

/// The next tokens of one sequence as a drafter guesses them, and how they came about.
struct Draft {
  std::vector<int32_t> tokens;

  /// Of each token, the distribution that it was drawn from, after everything that shaped it. Empty for a
  /// deterministic draft: its tokens are a function of the committed ones alone, as from a lookup or from
  /// always taking the likeliest token. (Such a token was not drawn from a softmax: naming one here would
  /// bias the output.)
  std::vector<Distribution> drawnFrom;

  /// Of each token, the drafter's estimate, in (0, 1), of the probability that it is accepted if all before
  /// it are. Empty: the drafter has none, and acceptance is learned by `match` and position. Must not depend
  /// on the token itself nor on later ones, if tokens are drawn: that is what keeps output unbiased when
  /// lengths are chosen by it.
  std::vector<float> confidence;

  /// How strong the evidence for the whole draft is, as the drafter counts it: for a lookup the tokens that
  /// matched. 0: unknown. Must not depend on drawn tokens.
  int32_t match = 0;

  bool isDeterministic() const { return drawnFrom.empty(); }
  void clear() { *this = {}; }
};

/// How a request turns logits into a distribution and a draw, for drafters that have a model: drafts that
/// went through the target's own pipeline (temperature, cuts, penalties) overlap best with the target.
class DraftPipeline {
public:
  virtual ~DraftPipeline() = default;

  /// Logits [vocabulary] for the token after the committed ones and `drafted`.
  virtual StatusOr<Distribution> distribution(std::span<const float> logits,
                                              std::span<const int32_t> drafted) const = 0;

  /// A token of that distribution. Its random number belongs to (seed, sequence, position, drafting): it is
  /// independent of those that verification uses, and the same whatever else is in the batch.
  virtual int32_t draw(const Distribution &distribution, std::span<const int32_t> drafted) const = 0;
};

/// Asks for up to `limit` tokens after the committed ones of a sequence.
struct DraftRequest {
  SequenceId sequence = 0;
  int32_t limit = 0;
  const DraftPipeline *pipeline = nullptr; // lives through the call; null: take the likeliest tokens
  /// The pages of the target's cache that hold the sequence's tokens but the last, which is not computed yet.
  /// Empty where there is no such cache. For drafters that read the target's hidden states, or that write
  /// there (Drafter::writesTargetPages).
  std::span<const int32_t> pages = {};
};

/// One caller at a time; the engine calls from the thread of its steps. The drafter owns all it remembers of
/// a sequence, from begin to forget. No error of a drafter fails a request: the engine goes on without
/// drafts from it, for the sequence (begin, append, truncate) or for the step (propose).
class Drafter {
public:
  virtual ~Drafter() = default;

  /// For statistics and options: "lookup", "model", ...
  virtual std::string_view name() const = 0;

  /// Most tokens that it can propose at once.
  virtual int32_t longestDraft() const = 0;

  /// Whether propose costs nothing worth deciding about (well below a hundredth of a model step). Such drafts
  /// are always made before the policy chooses.
  virtual bool isFree() const = 0;

  /// Whether it computes drafts in the target's pages, where the target will overwrite them: the pages of a
  /// request then have room for the sequence's last token and its drafts, and belong to it alone.
  virtual bool writesTargetPages() const { return false; }

  /// A new sequence without tokens.
  virtual Status begin(SequenceId sequence) = 0;

  /// Tokens that are certain: the prompt (in one or several calls) and what was accepted or sampled. Drafts
  /// are never appended before they are verified. Work may be put off until propose.
  virtual Status append(SequenceId sequence, std::span<const int32_t> tokens) = 0;

  /// Forgets all but the first `length` tokens (a failed step undone, an edited prompt).
  virtual Status truncate(SequenceId sequence, int64_t length) = 0;

  /// The sequence has ended. Unknown sequences are ignored.
  virtual void forget(SequenceId sequence) = 0;

  /// Committed tokens that propose would have to take in before it drafts, beyond those of the last step: the
  /// price of starting late.
  virtual int64_t backlog(SequenceId) const { return 0; }

  /// Fills drafts[i] (given empty) for requests[i], each of a different sequence, with 0 to `limit` tokens;
  /// no token is a fine answer. Does not change what is committed. Errors: all drafts of this call are
  /// dropped.
  virtual Status propose(std::span<const DraftRequest> requests, std::span<Draft> drafts) = 0;
};

/// Whether a draft keeps the rules above: at most `limit` tokens of the vocabulary, distributions that are
/// ascending, finite, of sum 1 and hold their token, estimates within (0, 1). What breaks them is not
/// verified.
Status checkDraft(const Draft &draft, int32_t limit, int32_t vocabulary);

} // namespace dspark::llm
