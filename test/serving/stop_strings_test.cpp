#include "runtime/serving/StopStrings.h"
#include <gtest/gtest.h>
#include <random>

using namespace dspark::serving;

namespace {

struct Result {
  std::string text;
  bool stopped = false;
};

// The text in pieces of at most `most` bytes, to its end or the first stop.
Result run(const std::vector<std::string> &strings, std::string_view text, size_t most, std::mt19937 &random,
           bool include = false) {
  StopStrings stops(strings, include);
  Result result;
  while (!text.empty() && !result.stopped) {
    const size_t bytes = std::min(text.size(), 1 + random() % most);
    result.stopped = stops.push(text.substr(0, bytes), result.text);
    text.remove_prefix(bytes);
  }
  if (!result.stopped)
    result.text += stops.finish();
  return result;
}

TEST(StopStrings, EndTheTextBeforeTheFirst) {
  std::mt19937 random(1);
  for (size_t most : {1, 2, 5, 100}) {
    const Result found = run({"stop", "\n\n"}, "one\ntwo\n\nthree stop", most, random);
    EXPECT_TRUE(found.stopped);
    EXPECT_EQ(found.text, "one\ntwo");
    EXPECT_EQ(run({"stop", "\n\n"}, "one\ntwo\n\nthree stop", most, random, /*include=*/true).text,
              "one\ntwo\n\n");
    EXPECT_EQ(run({"stop"}, "sto sstopp", most, random).text, "sto s");
    EXPECT_EQ(run({"stop"}, "sto sto", most, random).text, "sto sto");
    EXPECT_EQ(run({"bc", "abc"}, "xabcd", most, random).text, "x"); // both end together: the longest
    EXPECT_EQ(run({"b", "abc"}, "xabcd", most, random).text, "xa"); // complete first
  }
}

TEST(StopStrings, HoldBackOnlyWhatMayBecomeOne) {
  StopStrings stops({"stop", "toil"}, false);
  std::string out;
  EXPECT_FALSE(stops.push("a sto", out));
  EXPECT_EQ(out, "a ");
  EXPECT_FALSE(stops.push("i", out));
  EXPECT_EQ(out, "a s");
  EXPECT_FALSE(stops.push("n", out));
  EXPECT_EQ(out, "a stoin");
  EXPECT_EQ(stops.finish(), "");
}

// Random texts of two letters, with a plain search for what is complete first.
TEST(StopStrings, DoNotDependOnHowTheTextIsCut) {
  std::mt19937 random(7);
  const auto letters = [&](size_t least, size_t most) {
    std::string text(least + random() % (most - least + 1), 'a');
    for (char &c : text)
      c = char('a' + random() % 2);
    return text;
  };
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::string> strings;
    for (size_t i = 1 + random() % 3; i > 0; --i)
      strings.push_back(letters(1, 6));
    const std::string text = letters(0, 30);
    Result expected{text};
    for (size_t end = 1; end <= text.size() && !expected.stopped; ++end)
      for (const std::string &string : strings)
        if (std::string_view(text).substr(0, end).ends_with(string)) {
          const std::string before = text.substr(0, end - string.size());
          if (!expected.stopped || before.size() < expected.text.size())
            expected = {before, true};
        }
    const Result found = run(strings, text, 1 + random() % 8, random);
    ASSERT_EQ(found.text, expected.text);
    ASSERT_EQ(found.stopped, expected.stopped);
  }
}

} // namespace
