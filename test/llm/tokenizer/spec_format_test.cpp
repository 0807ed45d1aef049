#include "runtime/llm/tokenizer/SpecFormat.h"
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace dspark::llm {
namespace {

TokenizerSpec sample() {
  TokenizerSpec spec;
  spec.model = ModelKind::Unigram;
  spec.tokens = {{.text = "\xFF\xC3", .score = -1.5, .kind = TokenKind::Byte}, // no UTF-8
                 {.text = "", .kind = TokenKind::Control, .leftStrip = true, .normalized = true},
                 {.text = "word", .kind = TokenKind::UserDefined, .rightStrip = true, .singleWord = true}};
  spec.merges = {{"a", "b"}, {"\x80", ""}};
  spec.normalizer = {{NormalizerKind::Replace, " ", "\xE2\x96\x81"}};
  spec.rewrite = {{NormalizerKind::JoinWords, "", ""}};
  spec.preTokenizer = {{PreTokenizerKind::RegexKeep, "\\s+"}};
  spec.byteLevel = spec.ignoreMerges = spec.spaceSymbol = spec.dropLeadingSpace = spec.addBegin =
      spec.addEnd = true;
  spec.fuseUnknown = false;
  spec.longestWord = 7;
  spec.continuation = "@@";
  spec.unknown = 0, spec.begin = 1, spec.end = 2, spec.separator = -1;
  spec.stop = {1, 2};
  return spec;
}

TEST(SpecFormat, aTokenizerComesBackAsItWas) {
  std::vector<std::byte> bytes = encodeTokenizer(sample());
  auto read = decodeTokenizer(bytes);
  ASSERT_TRUE(read.isOk()) << read.status().message();
  EXPECT_EQ(encodeTokenizer(*read), bytes);
  EXPECT_EQ(read->tokens[0].text, "\xFF\xC3");
  EXPECT_EQ(read->tokens[0].score, -1.5);
  EXPECT_TRUE(read->tokens[1].leftStrip && read->tokens[1].normalized && !read->tokens[1].rightStrip);
  EXPECT_EQ(read->merges[1].left, "\x80");
  EXPECT_EQ(read->normalizer[0].content, "\xE2\x96\x81");
  EXPECT_EQ(read->preTokenizer[0].kind, PreTokenizerKind::RegexKeep);
  EXPECT_EQ(read->longestWord, 7u);
  EXPECT_EQ(read->stop, (std::vector<int32_t>{1, 2}));
}

TEST(SpecFormat, everyCutIsRefused) {
  std::vector<std::byte> bytes = encodeTokenizer(sample());
  for (size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(decodeTokenizer(std::span(bytes).first(length)).isOk()) << length;
}

// Every field in turn missing, or of another kind.
TEST(SpecFormat, everyFieldIsChecked) {
  std::vector<std::byte> bytes = encodeTokenizer(sample());
  auto *data = reinterpret_cast<const uint8_t *>(bytes.data());
  const nlohmann::json good = nlohmann::json::from_cbor(data, data + bytes.size());
  for (const auto &[key, value] : good.items())
    for (int wrong = 0; wrong < 2; ++wrong) {
      nlohmann::json bad = good;
      if (wrong == 0)
        bad.erase(key);
      else
        bad[key] = 1e300;
      std::vector<uint8_t> encoded = nlohmann::json::to_cbor(bad);
      auto read = decodeTokenizer(std::as_bytes(std::span(encoded)));
      ASSERT_FALSE(read.isOk()) << key;
      EXPECT_THAT(read.status().message(), testing::StartsWith("the tokenizer's "));
    }
}

TEST(SpecFormat, lengthsBeyondTheTextAreRefused) {
  std::vector<std::byte> bytes = encodeTokenizer(sample());
  auto *data = reinterpret_cast<const uint8_t *>(bytes.data());
  nlohmann::json bad = nlohmann::json::from_cbor(data, data + bytes.size());
  bad["tokens"]["lengths"][2] = 5;
  std::vector<uint8_t> encoded = nlohmann::json::to_cbor(bad);
  EXPECT_THAT(decodeTokenizer(std::as_bytes(std::span(encoded))).status().message(),
              testing::HasSubstr("length of a text is 5, expected 0 to 4"));
}

} // namespace
} // namespace dspark::llm
