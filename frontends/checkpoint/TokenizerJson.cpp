#include "frontends/checkpoint/TokenizerJson.h"
#include "frontends/checkpoint/ByteAlphabet.h"
#include "frontends/checkpoint/PreTokenizerTable.h"
#include <map>
#include <nlohmann/json.hpp>

namespace dspark::checkpoint {
namespace {

using namespace dspark::llm;
using Json = nlohmann::json;

constexpr int32_t kMostTokens = 16 * 1024 * 1024;
constexpr const char *kPunctuation = R"([!-/:-@\[-`{-~\p{P}])";

Status unsupported(const std::string &what) {
  return {Code::Unsupported, "tokenizer.json: " + what + " is not supported"};
}

/// The field, or `otherwise` where it is absent or null. Throws nlohmann's type error where it is something
/// else.
template <typename T> T field(const Json &object, const char *name, T otherwise) {
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? otherwise : found->get<T>();
}

std::string typeOf(const Json &object) { return field<std::string>(object, "type", ""); }

// Reads one file; each part of it has a method.
class Reader {
public:
  explicit Reader(const Json &root) : root(root) {}

  StatusOr<TokenizerSpec> run() {
    DSPARK_RETURN_IF_ERROR(readModel(root.at("model")));
    if (const auto normalizer = root.find("normalizer"); normalizer != root.end() && !normalizer->is_null())
      DSPARK_RETURN_IF_ERROR(readNormalizer(*normalizer));
    if (const auto splitter = root.find("pre_tokenizer"); splitter != root.end() && !splitter->is_null())
      DSPARK_RETURN_IF_ERROR(readPreTokenizer(*splitter));
    DSPARK_RETURN_IF_ERROR(readAddedTokens());
    DSPARK_RETURN_IF_ERROR(finishTokens());
    if (const auto decoder = root.find("decoder"); decoder != root.end() && !decoder->is_null())
      readDecoder(*decoder);
    if (const auto processor = root.find("post_processor"); processor != root.end() && !processor->is_null())
      DSPARK_RETURN_IF_ERROR(readPostProcessor(*processor));
    return std::move(spec);
  }

private:
  Status setToken(int64_t id, std::string text) {
    if (id < 0 || id >= kMostTokens)
      return invalidArgument("tokenizer.json: token \"" + text.substr(0, 80) + "\" has id " +
                             std::to_string(id));
    if (size_t(id) >= spec.tokens.size())
      spec.tokens.resize(size_t(id) + 1, {.text = "", .kind = TokenKind::Unused});
    spec.tokens[size_t(id)].text = std::move(text);
    spec.tokens[size_t(id)].kind = TokenKind::Normal;
    return Status::ok();
  }

  int32_t idOf(const std::string &text) const {
    for (size_t i = 0; i < spec.tokens.size(); ++i)
      if (spec.tokens[i].text == text)
        return int32_t(i);
    return -1;
  }

  // ---- model

  Status readModel(const Json &model) {
    std::string type = typeOf(model);
    if (type.empty()) // old files leave it out
      type = model.contains("merges") ? "BPE" : model.at("vocab").is_array() ? "Unigram" : "WordPiece";
    byteFallback = field(model, "byte_fallback", false);
    if (type == "BPE")
      return readMerges(model);
    if (type == "WordPiece")
      return readWordPiece(model);
    if (type == "Unigram")
      return readUnigram(model);
    return unsupported("the model \"" + type + "\"");
  }

  Status readVocabulary(const Json &vocabulary) {
    for (const auto &[text, id] : vocabulary.items())
      DSPARK_RETURN_IF_ERROR(setToken(id.get<int64_t>(), text));
    return Status::ok();
  }

  Status readMerges(const Json &model) {
    spec.model = ModelKind::Merges;
    for (const char *name : {"continuing_subword_prefix", "end_of_word_suffix"})
      if (!field<std::string>(model, name, "").empty())
        return unsupported(std::string("\"") + name + "\" of a BPE model");
    DSPARK_RETURN_IF_ERROR(readVocabulary(model.at("vocab")));
    for (const Json &merge : model.at("merges")) {
      if (merge.is_array()) {
        spec.merges.push_back({merge.at(0).get<std::string>(), merge.at(1).get<std::string>()});
        continue;
      }
      const std::string text = merge.get<std::string>();
      const size_t space = text.find(' ', 1);
      if (space == std::string::npos)
        return invalidArgument("tokenizer.json: merge \"" + text.substr(0, 80) + "\" has no two parts");
      spec.merges.push_back({text.substr(0, space), text.substr(space + 1)});
    }
    spec.fuseUnknown = field(model, "fuse_unk", false);
    spec.ignoreMerges = field(model, "ignore_merges", false);
    unknownText = field<std::string>(model, "unk_token", "");
    return Status::ok();
  }

  Status readWordPiece(const Json &model) {
    spec.model = ModelKind::WordPiece;
    spec.continuation = field<std::string>(model, "continuing_subword_prefix", "##");
    spec.longestWord = field<uint32_t>(model, "max_input_chars_per_word", 100);
    unknownText = field<std::string>(model, "unk_token", "[UNK]");
    spec.dropLeadingSpace = true;
    return readVocabulary(model.at("vocab"));
  }

  Status readUnigram(const Json &model) {
    spec.model = ModelKind::Unigram;
    int64_t id = 0;
    for (const Json &entry : model.at("vocab")) {
      DSPARK_RETURN_IF_ERROR(setToken(id, entry.at(0).get<std::string>()));
      spec.tokens[size_t(id++)].score = entry.at(1).get<double>();
    }
    spec.unknown = field<int32_t>(model, "unk_id", -1);
    if (spec.unknown >= 0 && spec.unknown < int32_t(spec.tokens.size()))
      spec.tokens[size_t(spec.unknown)].kind = TokenKind::Unknown;
    return Status::ok();
  }

  // ---- normaliser

  void normalize(NormalizerKind kind, std::string pattern = "", std::string content = "") {
    spec.normalizer.push_back({kind, std::move(pattern), std::move(content)});
  }

  Status readNormalizer(const Json &step) {
    static const std::map<std::string, NormalizerKind> simple = {
        {"NFC", NormalizerKind::Nfc},
        {"NFD", NormalizerKind::Nfd},
        {"NFKC", NormalizerKind::Nfkc},
        {"NFKD", NormalizerKind::Nfkd},
        {"Lowercase", NormalizerKind::Lowercase},
        {"StripAccents", NormalizerKind::StripMarks}};
    const std::string type = typeOf(step);
    if (type == "Sequence") {
      for (const Json &part : step.at("normalizers"))
        DSPARK_RETURN_IF_ERROR(readNormalizer(part));
    } else if (const auto found = simple.find(type); found != simple.end()) {
      normalize(found->second);
    } else if (type == "Prepend") {
      normalize(NormalizerKind::Prepend, "", step.at("prepend").get<std::string>());
    } else if (type == "Strip") {
      if (field(step, "strip_left", true))
        normalize(NormalizerKind::StripLeft);
      if (field(step, "strip_right", true))
        normalize(NormalizerKind::StripRight);
    } else if (type == "Replace") {
      return readReplace(step);
    } else if (type == "Precompiled") {
      return readCharsmap(step.at("precompiled_charsmap").get<std::string>());
    } else if (type == "BertNormalizer") {
      readBertNormalizer(step);
    } else if (type == "ByteLevel") {
      spec.byteLevel = true;
    } else {
      return unsupported("the normaliser \"" + type + "\"");
    }
    return Status::ok();
  }

  Status readReplace(const Json &step) {
    const Json &pattern = step.at("pattern");
    const std::string content = step.at("content").get<std::string>();
    if (pattern.contains("String"))
      normalize(NormalizerKind::Replace, pattern["String"].get<std::string>(), content);
    else if (pattern.at("Regex") == " {2,}" && content == " ")
      normalize(NormalizerKind::CollapseSpaces);
    else
      return unsupported("a replacement by the pattern \"" + pattern.at("Regex").get<std::string>() + "\"");
    return Status::ok();
  }

  void readBertNormalizer(const Json &step) {
    const bool lowercase = field(step, "lowercase", true);
    if (field(step, "clean_text", true))
      normalize(NormalizerKind::BertClean);
    if (field(step, "handle_chinese_chars", true))
      normalize(NormalizerKind::BertSpaceChinese);
    if (field(step, "strip_accents", lowercase)) {
      normalize(NormalizerKind::Nfd);
      normalize(NormalizerKind::StripAccents);
    }
    if (lowercase)
      normalize(NormalizerKind::Lowercase);
  }

  Status readCharsmap(const std::string &base64) {
    std::string bytes;
    uint32_t bits = 0;
    int count = 0;
    constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (char c : base64) {
      const size_t value = letters.find(c);
      if (c == '=')
        break;
      if (value == std::string_view::npos)
        return invalidArgument("tokenizer.json: \"precompiled_charsmap\" is not base64");
      bits = bits << 6 | uint32_t(value);
      if ((count += 6) >= 8)
        bytes += char(bits >> (count -= 8));
    }
    normalize(NormalizerKind::Charsmap, "", std::move(bytes));
    return Status::ok();
  }

  // ---- pre-tokeniser

  void split(std::string pattern, PreTokenizerKind kind = PreTokenizerKind::Regex) {
    spec.preTokenizer.push_back({kind, std::move(pattern)});
  }

  void rewrite(NormalizerKind kind, std::string pattern = "", std::string content = "") {
    spec.rewrite.push_back({kind, std::move(pattern), std::move(content)});
  }

  Status readPreTokenizer(const Json &step) {
    const std::string type = typeOf(step);
    if (type == "Sequence") {
      const Json &parts = step.at("pretokenizers");
      if (parts.size() == 2 && typeOf(parts[0]) == "WhitespaceSplit" && typeOf(parts[1]) == "Metaspace")
        rewrite(NormalizerKind::JoinWords); // every word gets its space symbol
      for (const Json &part : parts)
        if (!(typeOf(part) == "WhitespaceSplit" && typeOf(parts.back()) == "Metaspace"))
          DSPARK_RETURN_IF_ERROR(readPreTokenizer(part));
    } else if (type == "ByteLevel") {
      spec.byteLevel = true;
      if (field(step, "add_prefix_space", true))
        rewrite(NormalizerKind::PrependMissing, "", " ");
      if (field(step, "use_regex", true))
        split(std::string(findPreTokenizer("gpt-2")->patterns[0]));
    } else if (type == "Split") {
      return readSplit(step);
    } else if (type == "Metaspace") {
      return readMetaspace(step);
    } else if (type == "Digits") {
      split(field(step, "individual_digits", false) ? R"(\p{N})" : R"(\p{N}+)");
    } else if (type == "Punctuation") {
      return addSplit(kPunctuation, field<std::string>(step, "behavior", "Isolated"), false);
    } else if (type == "Whitespace") {
      split(R"(\s+)", PreTokenizerKind::RegexRemove);
      split(R"([\w\p{M}]+|[^\w\s\p{M}]+)");
    } else if (type == "WhitespaceSplit") {
      split(R"(\s+)", PreTokenizerKind::RegexRemove);
    } else if (type == "BertPreTokenizer") {
      split("", PreTokenizerKind::Bert);
    } else {
      return unsupported("the pre-tokeniser \"" + type + "\"");
    }
    return Status::ok();
  }

  Status readSplit(const Json &step) {
    const Json &pattern = step.at("pattern");
    std::string regex;
    if (pattern.contains("Regex"))
      regex = pattern["Regex"].get<std::string>();
    else
      for (char c : pattern.at("String").get<std::string>()) // every ASCII mark may be escaped
        regex += (uint8_t(c) < 0x80 && !std::isalnum(uint8_t(c)) ? "\\" : "") + std::string(1, c);
    return addSplit(regex, field<std::string>(step, "behavior", "Isolated"), field(step, "invert", false));
  }

  Status addSplit(const std::string &regex, const std::string &behaviour, bool invert) {
    const std::string one = "(?:" + regex + ")", other = "(?:(?!" + one + ")[\\s\\S])";
    if (behaviour == "Isolated")
      split(regex);
    else if (behaviour == "Removed")
      split(regex, invert ? PreTokenizerKind::RegexKeep : PreTokenizerKind::RegexRemove);
    else if (behaviour == "Contiguous")
      split(one + "+");
    else if (behaviour == "MergedWithNext" && !invert)
      split(one + other + "*");
    else if (behaviour == "MergedWithPrevious" && !invert)
      split(other + "*" + one);
    else
      return unsupported("the split behaviour \"" + behaviour + "\"" + (invert ? " inverted" : ""));
    return Status::ok();
  }

  Status readMetaspace(const Json &step) {
    const std::string symbol = field<std::string>(step, "replacement", "\xE2\x96\x81");
    const std::string scheme = field<std::string>(step, "prepend_scheme",
                                                  field(step, "add_prefix_space", true) ? "always" : "never");
    rewrite(NormalizerKind::Replace, " ", symbol);
    if (scheme != "never")
      rewrite(scheme == "first" ? NormalizerKind::PrependMissingFirst : NormalizerKind::PrependMissing, "",
              symbol);
    if (field(step, "split", true))
      split(symbol + "(?:(?!" + symbol + ")[\\s\\S])*");
    return Status::ok();
  }

  // ---- tokens

  Status readAddedTokens() {
    for (const Json &added : field(root, "added_tokens", Json::array())) {
      const auto id = added.at("id").get<int64_t>();
      DSPARK_RETURN_IF_ERROR(setToken(id, added.at("content").get<std::string>()));
      TokenSpec &token = spec.tokens[size_t(id)];
      token.kind = field(added, "special", false) ? TokenKind::Control : TokenKind::UserDefined;
      token.leftStrip = field(added, "lstrip", false);
      token.rightStrip = field(added, "rstrip", false);
      token.singleWord = field(added, "single_word", false);
      token.normalized = field(added, "normalized", false);
    }
    return Status::ok();
  }

  Status finishTokens() {
    if (spec.byteLevel) {
      for (TokenSpec &token : spec.tokens)
        if (token.kind == TokenKind::Normal)
          token.text = bytesFromAlphabet(token.text).value_or(token.text);
      for (MergeSpec &merge : spec.merges)
        merge = {bytesFromAlphabet(merge.left).value_or(merge.left),
                 bytesFromAlphabet(merge.right).value_or(merge.right)};
    }
    if (byteFallback)
      for (TokenSpec &token : spec.tokens)
        if (token.text.size() == 6 && token.text.starts_with("<0x") && token.text.ends_with(">"))
          token.kind = TokenKind::Byte;
    if (!unknownText.empty())
      spec.unknown = idOf(unknownText);
    return Status::ok();
  }

  // ---- decoder and what surrounds a text

  void readDecoder(const Json &decoder) {
    const std::string type = typeOf(decoder);
    if (type == "Sequence")
      for (const Json &part : decoder.at("decoders"))
        readDecoder(part);
    if (type == "Metaspace" || (type == "Replace" && field<std::string>(decoder, "content", "") == " "))
      spec.spaceSymbol = true;
    if ((type == "Metaspace" && field<std::string>(decoder, "prepend_scheme", "always") != "never") ||
        (type == "Strip" && field(decoder, "start", 0) > 0))
      spec.dropLeadingSpace = true;
  }

  Status readPostProcessor(const Json &processor) {
    const std::string type = typeOf(processor);
    if (type == "Sequence") {
      for (const Json &part : processor.at("processors"))
        DSPARK_RETURN_IF_ERROR(readPostProcessor(part));
    } else if (type == "BertProcessing" || type == "RobertaProcessing") {
      return surround({processor.at("cls").at(0).get<std::string>()},
                      {processor.at("sep").at(0).get<std::string>()});
    } else if (type == "TemplateProcessing") {
      std::vector<std::string> before, after;
      bool behind = false;
      for (const Json &piece : processor.at("single"))
        if (piece.contains("Sequence"))
          behind = true;
        else
          (behind ? after : before).push_back(piece.at("SpecialToken").at("id").get<std::string>());
      return surround(before, after);
    } else if (type != "ByteLevel") {
      return unsupported("the post-processor \"" + type + "\"");
    }
    return Status::ok();
  }

  Status surround(const std::vector<std::string> &before, const std::vector<std::string> &after) {
    if (before.size() > 1 || after.size() > 1)
      return unsupported("more than one token before or after a text");
    spec.addBegin = !before.empty();
    spec.addEnd = !after.empty();
    spec.begin = before.empty() ? spec.begin : idOf(before[0]);
    spec.end = after.empty() ? spec.end : idOf(after[0]);
    return Status::ok();
  }

  const Json &root;
  TokenizerSpec spec;
  std::string unknownText;
  bool byteFallback = false;
};

} // namespace

StatusOr<TokenizerSpec> readTokenizerJson(std::string_view json) {
  try {
    const Json root = Json::parse(json);
    return Reader(root).run();
  } catch (const Json::exception &error) { // the library's way to report both syntax and types
    return invalidArgument(std::string("tokenizer.json: ") + error.what());
  }
}

} // namespace dspark::checkpoint
