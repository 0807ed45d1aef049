// WordPiece (BERT): a word is cut into the longest token that starts it, then the longest that goes on, and
// so forth; a word that cannot be written whole is one unknown token.
#pragma once
#include "runtime/llm/tokenizer/Vocabulary.h"

namespace dspark::llm {

class WordPiece {
public:
  /// `vocabulary` must outlive this.
  WordPiece(const TokenizerSpec &spec, const Vocabulary &vocabulary)
      : vocabulary(&vocabulary), continuation(spec.continuation), longestWord(spec.longestWord),
        unknown(spec.unknown) {}

  /// Appends the ids of one word (valid UTF-8). Thread-safe.
  void encode(std::string_view word, std::vector<int32_t> &ids) const;

private:
  const Vocabulary *vocabulary;
  std::string continuation;
  uint32_t longestWord;
  int32_t unknown;
};

} // namespace dspark::llm
