// Text to token ids: added tokens, normaliser, pre-tokeniser, model, and the tokens around the whole.
#pragma once
#include "runtime/base/Status.h"
#include "runtime/llm/tokenizer/AddedTokens.h"
#include "runtime/llm/tokenizer/Merges.h"
#include "runtime/llm/tokenizer/Normalizer.h"
#include "runtime/llm/tokenizer/PreTokenizer.h"
#include "runtime/llm/tokenizer/Unigram.h"
#include "runtime/llm/tokenizer/WordPiece.h"
#include <memory>
#include <variant>

namespace dspark::llm {

struct EncodeOptions {
  bool addSpecial = true; // begin and end tokens, where the model wants them
  bool parseControl =
      false; // "<|im_end|>" in the text is the control token, not its characters: templates only
};

class Tokenizer {
public:
  /// Errors: ids outside the vocabulary, an empty one, patterns that do not compile.
  static StatusOr<std::unique_ptr<Tokenizer>> build(TokenizerSpec spec);

  /// Thread-safe. Errors: text that is not UTF-8 (with the place), an exhausted pattern.
  StatusOr<std::vector<int32_t>> encode(std::string_view text, EncodeOptions options = {}) const;

  const Vocabulary &vocabulary() const { return tokens; }
  const TokenizerSpec &spec() const { return description; }
  bool isStop(int32_t id) const;

private:
  explicit Tokenizer(TokenizerSpec spec);
  Status encodeText(std::string_view text, bool first, bool allowControl, std::vector<int32_t> &ids) const;

  TokenizerSpec description; // without what the members below hold
  Vocabulary tokens;
  Normalizer normalizer, rewriter;
  PreTokenizer preTokenizer;
  std::unique_ptr<AddedTokens> before, after; // normalisation
  std::variant<std::monostate, Merges, Unigram, WordPiece> model;
};

} // namespace dspark::llm
