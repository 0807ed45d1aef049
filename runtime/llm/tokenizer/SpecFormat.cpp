#include "runtime/llm/tokenizer/SpecFormat.h"
#include <cstring>
#include <nlohmann/json.hpp>

namespace dspark::llm {
namespace {

using nlohmann::json;

constexpr int kFormat = 1;

// Tokens are five parallel arrays: one number each costs less than one map each.
constexpr unsigned kLeftStrip = 1, kRightStrip = 2, kSingleWord = 4, kNormalized = 8;

// All texts in one string, and their lengths.
template <typename Range, typename TextOf> json texts(const Range &items, TextOf textOf) {
  json::binary_t all;
  json lengths = json::array();
  for (const auto &item : items) {
    const std::string &text = textOf(item);
    all.insert(all.end(), text.begin(), text.end());
    lengths.push_back(text.size());
  }
  return {{"bytes", std::move(all)}, {"lengths", std::move(lengths)}};
}

json bytesOf(const std::string &text) { return json::binary({text.begin(), text.end()}); }

json steps(const std::vector<NormalizerStep> &list) {
  json array = json::array();
  for (const NormalizerStep &step : list)
    array.push_back({int(step.kind), bytesOf(step.pattern), bytesOf(step.content)});
  return array;
}

// The first thing that is not as expected is thrown, and caught in decodeTokenizer.
[[noreturn]] void fail(const std::string &what) { throw corruptFile("the tokenizer's " + what); }

const json &at(const json &map, const char *key) {
  auto found = map.is_object() ? map.find(key) : map.end();
  if (!map.is_object() || found == map.end())
    fail(std::string("field '") + key + "' is missing");
  return *found;
}
const json &list(const json &map, const char *key) {
  const json &found = at(map, key);
  if (!found.is_array())
    fail(std::string("field '") + key + "' is " + found.type_name() + ", expected a list");
  return found;
}
int64_t integer(const json &value, const char *what, int64_t least, int64_t most) {
  bool isNumber =
      value.is_number_integer() && (!value.is_number_unsigned() || value.get<uint64_t>() <= INT64_MAX);
  int64_t number = isNumber ? value.get<int64_t>() : 0;
  if (!isNumber || number < least || number > most)
    fail(std::string(what) + " is " + (isNumber ? std::to_string(number) : value.type_name()) +
         ", expected " + std::to_string(least) + " to " + std::to_string(most));
  return number;
}
std::string text(const json &value, const char *what) {
  if (!value.is_binary())
    fail(std::string(what) + " is " + value.type_name() + ", expected bytes");
  const auto &bytes = value.get_binary();
  return {bytes.begin(), bytes.end()};
}
bool flag(const json &map, const char *key) {
  const json &value = at(map, key);
  if (!value.is_boolean())
    fail(std::string("field '") + key + "' is " + value.type_name() + ", expected a truth value");
  return value.get<bool>();
}

// Calls f(i, text) for every text; how many there are is checked before anything is made of them.
template <typename F> void forTexts(const json &map, const char *key, F f) {
  const json &both = at(map, key), &lengths = list(both, "lengths");
  const json &bytes = at(both, "bytes");
  if (!bytes.is_binary())
    fail(std::string("field '") + key + "' holds no bytes");
  const auto &all = bytes.get_binary();
  size_t place = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    auto length = size_t(integer(lengths[i], "length of a text", 0, int64_t(all.size() - place)));
    f(i, std::string(all.begin() + std::ptrdiff_t(place), all.begin() + std::ptrdiff_t(place + length)));
    place += length;
  }
}

std::vector<NormalizerStep> readSteps(const json &map, const char *key) {
  std::vector<NormalizerStep> read;
  for (const json &step : list(map, key)) {
    if (!step.is_array() || step.size() != 3)
      fail(std::string("field '") + key + "' holds a step that is no list of three");
    read.push_back({NormalizerKind(integer(step[0], "kind of a step", 0, int64_t(NormalizerKind::JoinWords))),
                    text(step[1], "pattern"), text(step[2], "content")});
  }
  return read;
}

void readTokens(const json &map, TokenizerSpec &spec) {
  forTexts(map, "tokens",
           [&](size_t, std::string text) { spec.tokens.emplace_back().text = std::move(text); });
  const json &scores = list(map, "scores"), &kinds = list(map, "kinds"), &flags = list(map, "flags");
  for (const json *side : {&scores, &kinds, &flags})
    if (side->size() != spec.tokens.size())
      fail("list of " + std::to_string(side->size()) + " entries belongs to " +
           std::to_string(spec.tokens.size()) + " tokens");
  for (size_t i = 0; i < spec.tokens.size(); ++i) {
    TokenSpec &token = spec.tokens[i];
    if (!scores[i].is_number())
      fail("score of token " + std::to_string(i) + " is " + scores[i].type_name() + ", expected a number");
    token.score = scores[i].get<double>();
    token.kind = TokenKind(integer(kinds[i], "kind of a token", 0, int64_t(TokenKind::Byte)));
    auto bits = unsigned(integer(flags[i], "flags of a token", 0, 15));
    token.leftStrip = bits & kLeftStrip, token.rightStrip = bits & kRightStrip;
    token.singleWord = bits & kSingleWord, token.normalized = bits & kNormalized;
  }
}

TokenizerSpec read(const json &map) {
  TokenizerSpec spec;
  integer(at(map, "format"), "format", kFormat, kFormat);
  spec.model = ModelKind(integer(at(map, "model"), "model", 0, int64_t(ModelKind::WordPiece)));
  readTokens(map, spec);
  forTexts(map, "left", [&](size_t, std::string text) { spec.merges.push_back({std::move(text), {}}); });
  size_t merges = spec.merges.size(), rights = 0;
  forTexts(map, "right", [&](size_t i, std::string text) {
    if (++rights <= merges)
      spec.merges[i].right = std::move(text);
  });
  if (rights != merges)
    fail("merges have " + std::to_string(merges) + " left and " + std::to_string(rights) + " right sides");
  spec.normalizer = readSteps(map, "normalizer");
  spec.rewrite = readSteps(map, "rewrite");
  for (const json &step : list(map, "pre_tokenizer")) {
    if (!step.is_array() || step.size() != 2)
      fail("field 'pre_tokenizer' holds a step that is no pair");
    spec.preTokenizer.push_back(
        {PreTokenizerKind(integer(step[0], "kind of a step", 0, int64_t(PreTokenizerKind::Bert))),
         text(step[1], "pattern")});
  }
  spec.byteLevel = flag(map, "byte_level"), spec.ignoreMerges = flag(map, "ignore_merges");
  spec.fuseUnknown = flag(map, "fuse_unknown"), spec.spaceSymbol = flag(map, "space_symbol");
  spec.dropLeadingSpace = flag(map, "drop_leading_space");
  spec.addBegin = flag(map, "add_begin"), spec.addEnd = flag(map, "add_end");
  spec.longestWord = uint32_t(integer(at(map, "longest_word"), "longest word", 0, UINT32_MAX));
  spec.continuation = text(at(map, "continuation"), "continuation");
  auto id = [&](const json &value) { return int32_t(integer(value, "id", -1, INT32_MAX)); };
  spec.unknown = id(at(map, "unknown")), spec.begin = id(at(map, "begin"));
  spec.end = id(at(map, "end")), spec.separator = id(at(map, "separator"));
  for (const json &stop : list(map, "stop"))
    spec.stop.push_back(id(stop));
  return spec;
}

} // namespace

std::vector<std::byte> encodeTokenizer(const TokenizerSpec &spec) {
  json scores = json::array(), kinds = json::array(), flags = json::array(), preTokenizer = json::array();
  for (const TokenSpec &token : spec.tokens) {
    scores.push_back(token.score);
    kinds.push_back(int(token.kind));
    flags.push_back((token.leftStrip ? kLeftStrip : 0) | (token.rightStrip ? kRightStrip : 0) |
                    (token.singleWord ? kSingleWord : 0) | (token.normalized ? kNormalized : 0));
  }
  for (const PreTokenizerStep &step : spec.preTokenizer)
    preTokenizer.push_back({int(step.kind), bytesOf(step.pattern)});
  json map = {
      {"format", kFormat},
      {"model", int(spec.model)},
      {"tokens",
       texts(spec.tokens, [](const TokenSpec &token) -> const std::string & { return token.text; })},
      {"scores", std::move(scores)},
      {"kinds", std::move(kinds)},
      {"flags", std::move(flags)},
      {"left", texts(spec.merges, [](const MergeSpec &merge) -> const std::string & { return merge.left; })},
      {"right",
       texts(spec.merges, [](const MergeSpec &merge) -> const std::string & { return merge.right; })},
      {"normalizer", steps(spec.normalizer)},
      {"rewrite", steps(spec.rewrite)},
      {"pre_tokenizer", std::move(preTokenizer)},
      {"byte_level", spec.byteLevel},
      {"ignore_merges", spec.ignoreMerges},
      {"fuse_unknown", spec.fuseUnknown},
      {"space_symbol", spec.spaceSymbol},
      {"drop_leading_space", spec.dropLeadingSpace},
      {"add_begin", spec.addBegin},
      {"add_end", spec.addEnd},
      {"longest_word", spec.longestWord},
      {"continuation", bytesOf(spec.continuation)},
      {"unknown", spec.unknown},
      {"begin", spec.begin},
      {"end", spec.end},
      {"separator", spec.separator},
      {"stop", spec.stop}};
  std::vector<uint8_t> encoded = json::to_cbor(map);
  auto *bytes = reinterpret_cast<const std::byte *>(encoded.data());
  return {bytes, bytes + encoded.size()};
}

StatusOr<TokenizerSpec> decodeTokenizer(std::span<const std::byte> bytes) {
  auto *first = reinterpret_cast<const uint8_t *>(bytes.data());
  json map = json::from_cbor(first, first + bytes.size(), /*strict=*/true, /*allow_exceptions=*/false);
  if (map.is_discarded())
    return corruptFile("the tokenizer is no CBOR");
  try {
    return read(map);
  } catch (const Status &error) {
    return error;
  }
}

} // namespace dspark::llm
