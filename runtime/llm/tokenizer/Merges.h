// Byte-pair encoding of one piece of text, by a ranked list of merges or, as SentencePiece does, by the
// scores of the tokens that a pair would make. Both always join the best pair of neighbours, the leftmost
// among equals.
#pragma once
#include "runtime/base/Status.h"
#include "runtime/llm/tokenizer/Vocabulary.h"

namespace dspark::llm {

class Merges {
public:
  /// `vocabulary` must outlive this. Errors: two merges of the same pair disagree in what they make.
  static StatusOr<Merges> build(const TokenizerSpec &spec, const Vocabulary &vocabulary);

  /// Appends the ids of `piece` (valid UTF-8) to `ids`. What the vocabulary cannot write becomes byte tokens
  /// or, without them, the unknown token. O(n log n) in the piece's length. Thread-safe.
  void encode(std::string_view piece, std::vector<int32_t> &ids) const;

private:
  // Texts that occur in merges have numbers: a token's is its id, others follow behind the vocabulary.
  struct Joined {
    int32_t rank, symbol;
  };
  class PairTable {
  public:
    void reserve(size_t pairs);
    /// False if the pair is there already.
    bool insert(int32_t left, int32_t right, Joined joined);
    const Joined *find(int32_t left, int32_t right) const;

  private:
    struct Slot {
      uint64_t key = ~uint64_t(0);
      Joined joined;
    };
    std::vector<Slot> slots;
  };

  int32_t symbolOf(std::string_view text) const;
  bool isWritable(int32_t id) const;
  /// What the two become, and how good that is (lower is better); symbol -1 if they do not join.
  struct Candidate {
    double order;
    int32_t symbol;
  };
  Candidate join(int32_t left, int32_t right, std::string_view both) const;
  /// `first`: where the piece's ids begin; unknowns of different pieces stay apart.
  void append(std::string_view text, int32_t symbol, size_t first, std::vector<int32_t> &ids) const;

  const Vocabulary *vocabulary = nullptr;
  PairTable pairs;
  int32_t unknown = -1;
  bool byScore = false, byteLevel = false, wholePieces = false, fuseUnknown = true;
};

} // namespace dspark::llm
