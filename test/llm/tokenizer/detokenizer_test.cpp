#include "runtime/llm/tokenizer/Detokenizer.h"
#include <gtest/gtest.h>

namespace dspark::llm {
namespace {

// A byte-level vocabulary of all single bytes, a few merges, and two added tokens.
TokenizerSpec byteSpec() {
  TokenizerSpec spec;
  spec.byteLevel = true;
  for (int byte = 0; byte < 256; ++byte)
    spec.tokens.push_back({.text = std::string(1, char(byte))});
  spec.tokens.push_back({.text = "ab"});
  spec.tokens.push_back({.text = "abc"});
  spec.tokens.push_back({.text = "<end>", .kind = TokenKind::Control});
  spec.tokens.push_back({.text = "::", .kind = TokenKind::UserDefined});
  spec.merges = {{"a", "b"}, {"ab", "c"}};
  spec.end = 258;
  spec.stop = {258};
  return spec;
}

std::unique_ptr<Tokenizer> make(TokenizerSpec spec) {
  auto tokenizer = Tokenizer::build(std::move(spec));
  EXPECT_TRUE(tokenizer.isOk()) << tokenizer.status().message();
  return std::move(*tokenizer);
}

TEST(Detokenizer, charactersComeWhole) {
  const auto tokenizer = make(byteSpec());
  Detokenizer detokenizer(*tokenizer);
  EXPECT_EQ(detokenizer.push(0xF0), "");
  EXPECT_EQ(detokenizer.push(0x9F), "");
  EXPECT_EQ(detokenizer.push(0x98), "");
  EXPECT_EQ(detokenizer.push(0x80), "\xF0\x9F\x98\x80");
  EXPECT_EQ(detokenizer.push(257), "abc");
  EXPECT_EQ(detokenizer.push(258), "");
  EXPECT_EQ(detokenizer.finish(), "");
}

TEST(Detokenizer, brokenCharactersBecomeReplacements) {
  const auto tokenizer = make(byteSpec());
  EXPECT_EQ(decode(*tokenizer, {0xC3, 'x', 0xE2, 0x82}), "\xEF\xBF\xBDx\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(decode(*tokenizer, {'a', -5, 100000, 'b'}), "ab");
}

TEST(Tokenizer, controlTokensAreTextUnlessAllowed) {
  const auto tokenizer = make(byteSpec());
  EXPECT_EQ(*tokenizer->encode("abc::<end>", {.parseControl = true}), (std::vector<int32_t>{257, 259, 258}));
  EXPECT_EQ(*tokenizer->encode("::<end>"), (std::vector<int32_t>{259, '<', 'e', 'n', 'd', '>'}));
}

TEST(Tokenizer, textThatIsNotUtf8IsRefused) {
  const auto tokenizer = make(byteSpec());
  const auto ids = tokenizer->encode("ab\xFFz");
  ASSERT_FALSE(ids.isOk());
  EXPECT_EQ(ids.status().message(), "the text is not UTF-8: byte 2 of 4 starts no character");
}

TEST(Tokenizer, idsOutsideTheVocabularyAreRefused) {
  TokenizerSpec spec = byteSpec();
  spec.begin = 260;
  EXPECT_EQ(Tokenizer::build(spec).status().message(),
            "the tokenizer's begin token is 260, but it has 260 tokens");
  EXPECT_FALSE(Tokenizer::build({}).isOk());
}

TEST(Tokenizer, aPatternThatExplodesEnds) {
  TokenizerSpec spec = byteSpec();
  spec.preTokenizer = {{PreTokenizerKind::Regex, "(x+x+)+y"}};
  const auto ids = make(std::move(spec))->encode(std::string(200, 'x') + "zy");
  EXPECT_FALSE(ids.isOk());
  TokenizerSpec broken = byteSpec();
  broken.preTokenizer = {{PreTokenizerKind::Regex, "(x"}};
  EXPECT_FALSE(Tokenizer::build(std::move(broken)).isOk());
}

TEST(Tokenizer, longPiecesTakeNoQuadraticTime) {
  const auto tokenizer = make(byteSpec());
  std::string text;
  for (int i = 0; i < 300000; ++i)
    text += "abc";
  EXPECT_EQ(tokenizer->encode(text)->size(), 300000u);
}

// Decoding what was encoded gives the text back, for every text that is UTF-8.
TEST(Tokenizer, encodingLosesNothing) {
  const auto tokenizer = make(byteSpec());
  for (const std::string text : {"", "abcab", "caf\xC3\xA9 \xE2\x82\xAC", "::a::", "\n\t \r\n"})
    EXPECT_EQ(decode(*tokenizer, *tokenizer->encode(text)), text);
}

} // namespace
} // namespace dspark::llm
