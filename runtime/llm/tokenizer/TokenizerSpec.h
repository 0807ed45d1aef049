// What a tokenizer is, as plain data: the form that checkpoints' tokenizers (GGUF metadata, tokenizer.json)
// are brought to, that a plan stores, and that Tokenizer is built from. The stages and their names are those
// of Hugging Face's tokenizers library: normaliser, pre-tokeniser, model, decoder.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace dspark::llm {

enum class TokenKind : uint8_t {
  Normal,
  Unknown,     // stands for what the vocabulary cannot write
  Control,     // begin, end, turn markers: never part of the text, matched only where the caller allows it
  UserDefined, // matched in the text before anything else
  Unused,
  Byte, // one byte, where no other token fits
};

/// `text` is the bytes that the token stands for. In byte-level vocabularies they need not be UTF-8; in
/// SentencePiece ones a space is U+2581. `score` orders Unigram and scored-merge models.
struct TokenSpec {
  std::string text;
  double score = 0;
  TokenKind kind = TokenKind::Normal;
  bool leftStrip = false, rightStrip = false; // a matched token takes the white space beside it
  bool singleWord = false;                    // matches only between non-word characters
  bool normalized = false;                    // matched after normalisation instead of before
};

enum class NormalizerKind : uint8_t {
  Nfc,
  Nfd,
  Nfkc,
  Nfkd,
  Lowercase,
  StripAccents,        // non-spacing marks (Mn)
  StripMarks,          // all marks (M)
  Replace,             // pattern (a literal) by content
  Prepend,             // content, in front of every stretch of text between matched tokens
  PrependMissing,      // the same, unless it starts with the content
  PrependMissingFirst, // the same, at the very start of the input only
  StripLeft,
  StripRight,
  Charsmap,  // SentencePiece's compiled table of replacements, in content
  BertClean, // control characters vanish, white space becomes a space
  BertSpaceChinese,
  CollapseSpaces, // runs of spaces become one
  JoinWords,      // runs of white space become one space, those at the ends vanish
};

struct NormalizerStep {
  NormalizerKind kind;
  std::string pattern, content;
};

enum class PreTokenizerKind : uint8_t {
  Regex,       // every match is a piece, and so is what lies between
  RegexRemove, // matches separate pieces and vanish
  RegexKeep,   // only matches are pieces
  Bert,        // white space separates, each punctuation mark is a piece
};

struct PreTokenizerStep {
  PreTokenizerKind kind;
  std::string pattern; // PCRE2 syntax, Unicode properties on
};

enum class ModelKind : uint8_t {
  Merges,       // byte-pair encoding by a ranked list of merges
  ScoredMerges, // SentencePiece BPE: any pair that is a token, best score first
  Unigram,
  WordPiece,
};

/// Two tokens' texts that become one, in order of rank.
struct MergeSpec {
  std::string left, right;
};

struct TokenizerSpec {
  ModelKind model = ModelKind::Merges;
  std::vector<TokenSpec> tokens; // index is the id
  std::vector<MergeSpec> merges;
  std::vector<NormalizerStep> normalizer;
  std::vector<NormalizerStep> rewrite; // the same, behind the second look for added tokens
  std::vector<PreTokenizerStep> preTokenizer;

  bool byteLevel = false;    // pieces are cut into bytes, else into characters
  bool ignoreMerges = false; // a piece that is a token stays whole
  bool fuseUnknown = true;   // neighbouring unknowns become one
  int32_t unknown = -1;
  uint32_t longestWord = 100;      // WordPiece: longer ones are unknown, in characters
  std::string continuation = "##"; // WordPiece: in front of what is not the start of a word
  bool spaceSymbol = false;        // decoding: U+2581 is a space
  bool dropLeadingSpace = false;   // decoding: the first space was put there by the normaliser

  int32_t begin = -1, end = -1, separator = -1; // ids, -1: none
  bool addBegin = false, addEnd = false;
  std::vector<int32_t> stop; // tokens that end a generation, `end` among them
};

} // namespace dspark::llm
