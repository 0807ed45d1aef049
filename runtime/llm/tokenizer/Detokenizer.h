// Token ids to text, all at once or as they come.
#pragma once
#include "runtime/llm/tokenizer/Tokenizer.h"

namespace dspark::llm {

/// The bytes that a token adds. Control tokens add nothing unless `showControl`.
std::string tokenBytes(const Tokenizer &tokenizer, int32_t id, bool showControl = false);

/// Text of one sequence as it grows. A character is given out only once it is whole; bytes that can no longer
/// become one are replaced by U+FFFD. One thread at a time; `tokenizer` must outlive it.
class Detokenizer {
public:
  explicit Detokenizer(const Tokenizer &tokenizer, bool showControl = false)
      : tokenizer(&tokenizer), showControl(showControl), atStart(tokenizer.spec().dropLeadingSpace) {}

  /// The text that becomes certain with this token; often empty in the middle of a character.
  std::string push(int32_t id);
  /// What is still held back, at the end of the sequence.
  std::string finish();

private:
  std::string release(bool final);

  const Tokenizer *tokenizer;
  bool showControl, atStart;
  std::string held; // at most three bytes between calls
};

/// The text of a whole sequence.
std::string decode(const Tokenizer &tokenizer, const std::vector<int32_t> &ids, bool showControl = false);

} // namespace dspark::llm
