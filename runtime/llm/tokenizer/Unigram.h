// SentencePiece's Unigram model: the segmentation with the largest sum of scores, by Viterbi (Kudo 2018,
// https://arxiv.org/abs/1804.10959). An unknown character costs ten more than the worst token.
#pragma once
#include "runtime/llm/tokenizer/Vocabulary.h"

namespace dspark::llm {

class Unigram {
public:
  /// `vocabulary` must outlive this.
  Unigram(const TokenizerSpec &spec, const Vocabulary &vocabulary);

  /// Appends the ids of `piece` (valid UTF-8). O(n * longest token). Thread-safe.
  void encode(std::string_view piece, std::vector<int32_t> &ids) const;

private:
  /// `first`: where the piece's ids begin; unknowns of different pieces stay apart.
  void appendUnknown(std::string_view text, size_t first, std::vector<int32_t> &ids) const;

  const Vocabulary *vocabulary;
  int32_t unknown;
  bool fuseUnknown;
  double unknownScore;
};

} // namespace dspark::llm
