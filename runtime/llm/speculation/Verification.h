// Which drafted tokens stand, and what follows them, so that what is emitted is distributed exactly as if no
// draft had been made (rejection sampling: Leviathan et al. 2211.17192, Chen et al. 2302.01318; as in the
// DSpark paper, 2607.05147, section 2).
//
// The model has computed one row after the committed tokens and one after each of the first `length` drafts.
// Row k is the distribution p of the token after k drafts; it counts only if those k were accepted, so it is
// asked for only then: penalties and grammars advance along accepted tokens alone and never roll back.
//
// - Deterministic drafts: draft k stands iff it is the token that plain decoding draws at its position. The
//   random number of a position is fixed by (seed, sequence, position), so the output is equal token by token
//   to that without speculation, at every temperature, whatever was drafted and however lengths were chosen.
// - Drafts drawn from q: draft x stands with probability min(1, p(x) / q(x)); the first that does not is
//   replaced by a draw from max(p - q, 0), normalised. The output is equal in distribution, provided that the
//   choice of lengths did not look at the drawn tokens that it lets in or keeps out (PrefixScheduler.h).
// After the last draft that stands comes one token more, drawn as always.
#pragma once
#include "runtime/base/Status.h"
#include "runtime/llm/speculation/Drafter.h"
#include <cstddef>

namespace dspark::llm {

/// What verification asks about one sequence; the engine answers. Calls come in order of rows; after an error
/// there are no more.
class VerifiedSequence {
public:
  virtual ~VerifiedSequence() = default;

  /// The token that plain decoding emits at row `row`. Errors (logits that are not numbers, a grammar that
  /// allows nothing) fail this request alone.
  virtual StatusOr<int32_t> drawn(size_t row) = 0;

  /// The distribution that drawn(row) draws from. Valid until the next call. Asked for drawn drafts only.
  virtual StatusOr<const Distribution *> distribution(size_t row) = 0;

  /// A token of `residual` at the row's position, by the same random number as drawn(row) uses.
  virtual int32_t drawnFrom(const Distribution &residual, size_t row) = 0;

  /// A random number in [0, 1) that belongs to (seed, sequence, position of the row, acceptance), independent
  /// of all others and of the batch.
  virtual double acceptance(size_t row) = 0;

  /// Takes the next token of the output. False: the sequence ends with it (stop token, stop string, length),
  /// and nothing after it is looked at.
  virtual bool commit(int32_t token) = 0;
};

struct Verdict {
  int32_t judged = 0;    // drafts that were accepted or rejected; those after an end are neither
  int32_t accepted = 0;  // of those, from the first on; the keys and values of their rows stay
  int32_t committed = 0; // tokens taken, the one after the accepted drafts included
  bool ended = false;    // commit said so
};

/// Verifies the first `length` tokens of a draft that passed checkDraft; length 0 is a step of plain
/// decoding. Errors: those of the sequence's answers; tokens committed before stay so.
StatusOr<Verdict> verify(const Draft &draft, size_t length, VerifiedSequence &sequence);

/// max(p - q, 0), normalised; p itself where that leaves nothing (p and q equal up to rounding).
Distribution residual(const Distribution &p, const Distribution &q);

/// The probability of a token, 0 if it is not there.
float probabilityOf(const Distribution &distribution, int32_t token);

} // namespace dspark::llm
