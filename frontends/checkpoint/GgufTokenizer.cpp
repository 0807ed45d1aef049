#include "frontends/checkpoint/GgufTokenizer.h"
#include "frontends/checkpoint/ByteAlphabet.h"
#include "frontends/checkpoint/PreTokenizerTable.h"
#include <algorithm>

namespace dspark::checkpoint {
namespace {

using namespace dspark::llm;

constexpr const char *kSpaceSymbol = "\xE2\x96\x81"; // U+2581
// Texts of tokens that end a turn: files often name only one of them.
constexpr std::string_view kTurnEnds[] = {
    "<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>",         "<|endoftext|>", "<|eom_id|>",
    "<EOT>",      "_<EOT>",     "<turn|>", "<|END_OF_TURN_TOKEN|>", "<|return|>"};

std::string key(std::string_view name) { return "tokenizer.ggml." + std::string(name); }

int64_t integerOr(const GgufFile &file, std::string_view name, int64_t otherwise) {
  const GgufValue *value = file.find(key(name));
  const std::optional<int64_t> given = value ? value->integer() : std::nullopt;
  return given && *given >= 0 && *given <= INT32_MAX ? *given : otherwise;
}

bool booleanOr(const GgufFile &file, std::string_view name, bool otherwise) {
  const GgufValue *value = file.find(key(name));
  return value ? value->boolean().value_or(otherwise) : otherwise;
}

std::string_view stringOr(const GgufFile &file, std::string_view name, std::string_view otherwise) {
  const GgufValue *value = file.find(key(name));
  return value ? value->string().value_or(otherwise) : otherwise;
}

TokenKind kindFromFile(double number) {
  constexpr TokenKind kinds[] = {TokenKind::Normal,  TokenKind::Normal,      TokenKind::Unknown,
                                 TokenKind::Control, TokenKind::UserDefined, TokenKind::Unused,
                                 TokenKind::Byte};
  return number >= 0 && number < std::size(kinds) ? kinds[size_t(number)] : TokenKind::Normal;
}

Status readTokens(const GgufFile &file, TokenizerSpec &spec) {
  const GgufValue *list = file.find(key("tokens"));
  const auto texts = list ? list->strings() : std::nullopt;
  if (!texts)
    return corruptFile("the file has no list of strings tokenizer.ggml.tokens");
  const auto numbers = [&](std::string_view name) -> std::optional<std::vector<double>> {
    const GgufValue *value = file.find(key(name));
    return value ? value->numbers() : std::nullopt;
  };
  const auto kinds = numbers("token_type"), scores = numbers("scores");
  for (const auto &[name, values] : {std::pair{"token_type", &kinds}, {"scores", &scores}})
    if (*values && (*values)->size() != texts->size())
      return corruptFile("tokenizer.ggml." + std::string(name) + " has " + std::to_string((*values)->size()) +
                         " entries, tokenizer.ggml.tokens " + std::to_string(texts->size()));
  spec.tokens.resize(texts->size());
  for (size_t i = 0; i < texts->size(); ++i) {
    spec.tokens[i].text = std::string((*texts)[i]);
    spec.tokens[i].kind = kinds ? kindFromFile((*kinds)[i]) : TokenKind::Normal;
    spec.tokens[i].score = scores ? (*scores)[i] : 0;
  }
  return Status::ok();
}

// "left right", with a space between; either may itself hold spaces only in its first character.
Status readMerges(const GgufFile &file, bool byteLevel, TokenizerSpec &spec) {
  const GgufValue *list = file.find(key("merges"));
  const auto merges = list ? list->strings() : std::nullopt;
  if (!merges)
    return corruptFile("the file has no list of strings tokenizer.ggml.merges");
  const auto decoded = [&](std::string_view text) {
    return byteLevel ? bytesFromAlphabet(text).value_or(std::string(text)) : std::string(text);
  };
  for (std::string_view merge : *merges) {
    const size_t space = merge.find(' ', 1);
    if (space == std::string_view::npos)
      return corruptFile("merge \"" + std::string(merge.substr(0, 80)) + "\" has no space between two parts");
    spec.merges.push_back({decoded(merge.substr(0, space)), decoded(merge.substr(space + 1))});
  }
  return Status::ok();
}

void spacesAsSymbols(TokenizerSpec &spec) {
  spec.normalizer.push_back({NormalizerKind::Replace, " ", kSpaceSymbol});
  spec.spaceSymbol = true;
}

Status readByteLevel(const GgufFile &file, TokenizerSpec &spec) {
  const std::string_view name = stringOr(file, "pre", "");
  const PreTokenizerRow *row = findPreTokenizer(name);
  if (!row)
    return {Code::Unsupported, "the pre-tokeniser \"" + std::string(name.substr(0, 80)) + "\" is not known"};
  spec.model = ModelKind::Merges;
  spec.byteLevel = true;
  spec.ignoreMerges = row->ignoreMerges;
  for (std::string_view pattern : row->patterns)
    spec.preTokenizer.push_back({PreTokenizerKind::Regex, std::string(pattern)});
  for (TokenSpec &token : spec.tokens)
    if (token.kind == TokenKind::Normal || token.kind == TokenKind::Unused) {
      // A text outside the alphabet cannot be made from bytes: such a token is only ever decoded.
      const std::optional<std::string> bytes = bytesFromAlphabet(token.text);
      token.kind = bytes ? token.kind : TokenKind::Unused;
      token.text = bytes.value_or(token.text);
    }
  return readMerges(file, true, spec);
}

// Gemma 4: SentencePiece's alphabet with ranked merges; only line feeds separate pieces.
Status readSymbolMerges(const GgufFile &file, TokenizerSpec &spec) {
  spec.model = ModelKind::Merges;
  spacesAsSymbols(spec);
  spec.preTokenizer.push_back({PreTokenizerKind::Regex, R"([^\n]+|\n+)"});
  spec.ignoreMerges = false;
  return readMerges(file, false, spec);
}

void readSentencePiece(const GgufFile &file, bool unigram, TokenizerSpec &spec) {
  spec.model = unigram ? ModelKind::Unigram : ModelKind::ScoredMerges;
  const bool prefix = booleanOr(file, "add_space_prefix", true);
  if (unigram) {
    if (const GgufValue *map = file.find(key("precompiled_charsmap")); map && map->kind == GgufKind::Array)
      spec.normalizer.push_back(
          {NormalizerKind::Charsmap, "",
           std::string(reinterpret_cast<const char *>(map->bytes.data()), map->bytes.size())});
    if (booleanOr(file, "remove_extra_whitespaces", false)) {
      spec.normalizer.push_back({NormalizerKind::StripLeft, "", ""});
      spec.normalizer.push_back({NormalizerKind::StripRight, "", ""});
      spec.normalizer.push_back({NormalizerKind::CollapseSpaces, "", ""});
    }
  }
  if (prefix)
    spec.normalizer.push_back({NormalizerKind::Prepend, "", " "});
  spacesAsSymbols(spec);
  spec.dropLeadingSpace = prefix;
}

// The file writes the start of a word with U+2581 in front and the rest of it bare; WordPiece has it the
// other way.
void readWordPiece(TokenizerSpec &spec) {
  spec.model = ModelKind::WordPiece;
  const std::string start = kSpaceSymbol;
  for (TokenSpec &token : spec.tokens) {
    if (token.kind != TokenKind::Normal)
      continue;
    token.text =
        token.text.starts_with(start) ? token.text.substr(start.size()) : spec.continuation + token.text;
  }
  spec.normalizer = {{NormalizerKind::BertClean, "", ""},
                     {NormalizerKind::BertSpaceChinese, "", ""},
                     {NormalizerKind::Nfd, "", ""},
                     {NormalizerKind::StripAccents, "", ""},
                     {NormalizerKind::Lowercase, "", ""}};
  spec.preTokenizer = {{PreTokenizerKind::Bert, ""}};
  spec.dropLeadingSpace = true;
}

void readSpecial(const GgufFile &file, TokenizerSpec &spec) {
  const std::string_view model = stringOr(file, "model", "");
  const bool sentencePiece = spec.model == ModelKind::ScoredMerges,
             wordPiece = spec.model == ModelKind::WordPiece;
  const auto id = [&](std::string_view name, int64_t otherwise) {
    const int64_t given = integerOr(file, std::string(name) + "_token_id", otherwise);
    return given < int64_t(spec.tokens.size()) ? int32_t(given) : -1;
  };
  spec.begin = id(wordPiece && file.find(key("cls_token_id")) ? "cls" : "bos", sentencePiece ? 1 : -1);
  spec.end = id("eos", sentencePiece ? 2 : -1);
  spec.separator = id("seperator", id("separator", -1));
  spec.unknown = id("unknown", sentencePiece ? 0 : -1);
  if (wordPiece && spec.separator >= 0)
    spec.end = spec.separator;
  const PreTokenizerRow *row = spec.byteLevel ? findPreTokenizer(stringOr(file, "pre", "")) : nullptr;
  spec.addBegin = booleanOr(file, "add_bos_token", sentencePiece || wordPiece || (row && row->ignoreMerges));
  spec.addEnd = booleanOr(file, "add_eos_token", wordPiece || model == "t5");
  const auto addStop = [&](int32_t stop) {
    if (stop >= 0 && std::find(spec.stop.begin(), spec.stop.end(), stop) == spec.stop.end())
      spec.stop.push_back(stop);
  };
  addStop(spec.end);
  addStop(id("eot", -1));
  addStop(id("eom", -1));
  for (size_t i = 0; i < spec.tokens.size(); ++i)
    if (std::find(std::begin(kTurnEnds), std::end(kTurnEnds), spec.tokens[i].text) != std::end(kTurnEnds)) {
      // Published files give some of them the wrong kind; as text they would never match.
      spec.tokens[i].kind = TokenKind::Control;
      addStop(int32_t(i));
    }
}

} // namespace

StatusOr<TokenizerSpec> readGgufTokenizer(const GgufFile &file) {
  TokenizerSpec spec;
  DSPARK_RETURN_IF_ERROR(readTokens(file, spec));
  const std::string_view model = stringOr(file, "model", "");
  if (model == "gpt2")
    DSPARK_RETURN_IF_ERROR(readByteLevel(file, spec));
  else if (model == "gemma4")
    DSPARK_RETURN_IF_ERROR(readSymbolMerges(file, spec));
  else if (model == "llama" || model == "t5")
    readSentencePiece(file, model == "t5", spec);
  else if (model == "bert")
    readWordPiece(spec);
  else
    return Status(Code::Unsupported,
                  "the tokenizer model \"" + std::string(model.substr(0, 80)) +
                      "\" (tokenizer.ggml.model) is not known; gpt2, llama, gemma4, t5 and bert are");
  readSpecial(file, spec);
  return spec;
}

} // namespace dspark::checkpoint
