// Operators on strings against values worked out by hand, where Python's str methods and RE2 are the
// reference.
#include "kernels/common/strings.h"
#include "test/kernels/kernel_case.h"
#include <gmock/gmock.h>

namespace dspark::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Strings = std::vector<std::string>;

// Keeps what kernels make for as long as the test runs, and what they complain of.
class TestRun final : public StringRun {
public:
  TestRun() : scope(*this) {}
  char *take(uint64_t bytes) override { return texts.emplace_back(bytes, '?').data(); }
  void refuse(std::string reason) override { refusal = std::move(reason); }
  std::string refusal;

private:
  std::deque<std::string> texts;
  Scope scope;
};

class Text : public testing::Test {
protected:
  // The characters must outlive the tensor, so they are the test's.
  Tensor strings(const Strings &texts, std::vector<int64_t> dims) {
    const Strings &kept = owned.emplace_back(texts);
    Tensor t{DType::String, std::move(dims), std::vector<std::byte>(texts.size() * sizeof(StringElement))};
    for (size_t i = 0; i < kept.size(); ++i)
      t.as<StringElement>()[i] = std::string_view(kept[i]);
    return t;
  }
  Tensor strings(const Strings &texts) { return strings(texts, {int64_t(texts.size())}); }
  static Strings read(const Tensor &t) {
    auto *views = t.as<StringElement>();
    Strings texts;
    for (int64_t i = 0; i < t.elements(); ++i)
      texts.emplace_back(std::string_view(views[i]));
    return texts;
  }
  // The row of an operator that others have too.
  std::vector<Tensor> runNamed(std::string_view row, std::vector<Tensor> in, const AttrList &attrs = {}) {
    for (const Kernel &kernel : allKernels())
      if (kernel.name == row)
        return runRow(kernel, in, attrs);
    ADD_FAILURE() << "no row " << row;
    return {};
  }

  TestRun run;
  std::deque<Strings> owned;
};

TEST_F(Text, ConcatAndEqualBroadcast) {
  Tensor a = strings({"a", "", "\xc3\xa9"}), b = strings({"-x"}, {1}), column = strings({"a", "b"}, {2, 1});
  EXPECT_THAT(read(runOp("string_concat", {a, b})[0]), ElementsAre("a-x", "-x", "\xc3\xa9-x"));
  EXPECT_THAT(runOp("string_concat", {a, column})[0].dims, ElementsAre(2, 3));
  AttrList equal;
  equal.set("kind", "eq");
  Tensor y = runNamed("compare_strings", {a, column}, equal)[0];
  EXPECT_THAT(std::vector<uint8_t>(y.as<uint8_t>(), y.as<uint8_t>() + 6), ElementsAre(1, 0, 0, 0, 0, 0));
  AttrList less;
  less.set("kind", "lt");
  EXPECT_THAT(refusal("compare", {a, b}, less), HasSubstr("equality only"));
}

TEST_F(Text, ConcatOfManyIsOneTile) {
  // More elements than one tile of other elementwise kernels has.
  Strings many;
  for (int i = 0; i < 40000; ++i)
    many.push_back(std::to_string(i));
  Strings y = read(runOp("string_concat", {strings(many), strings({"!"})})[0]);
  EXPECT_EQ(y.front(), "0!");
  EXPECT_EQ(y.back(), "39999!");
}

// Parts as Python's str.split gives them.
TEST_F(Text, Split) {
  struct Case {
    std::string text;
    const char *delimiter;
    int64_t most;
    Strings parts;
  };
  const Case cases[] = {
      {"a.b..c", ".", -1, {"a", "b", "", "c"}},
      {"", ".", -1, {""}},
      {"", "", -1, {}},
      {"  a b\t c ", "", -1, {"a", "b", "c"}},
      {" a b c ", "", 1, {"a", "b c "}},
      {"a--b--c", "--", 1, {"a", "b--c"}},
      {"abc", ".", 0, {"abc"}},
      {"   ", "", -1, {}},
      {"a b ", "", 2, {"a", "b"}},
  };
  for (const Case &c : cases) {
    AttrList attrs;
    attrs.set("delimiter", c.delimiter).set("maxsplit", c.most);
    Tensor x = strings({c.text});
    std::vector<Tensor> sizes = runOp("string_split_sizes", {x}, attrs, 2);
    EXPECT_EQ(*sizes[0].as<int64_t>(), int64_t(c.parts.size())) << c.text;
    EXPECT_EQ(*sizes[1].as<int64_t>(), int64_t(c.parts.size())) << c.text;
    EXPECT_EQ(read(runOp("string_split", {x, index(int64_t(c.parts.size()))}, attrs)[0]), c.parts) << c.text;
  }
  AttrList attrs;
  attrs.set("delimiter", ".");
  EXPECT_THAT(read(runOp("string_split", {strings({"a.b", "c"}), index(3)}, attrs)[0]),
              ElementsAre("a", "b", "", "c", "", ""))
      << "rows are filled up";
  EXPECT_THAT(refusal("string_split", {strings({"a"}), index(-1)}), HasSubstr("0 or more"));
}

TEST_F(Text, Normalize) {
  AttrList upper;
  upper.set("case_change_action", "UPPER").set("is_case_sensitive", 1);
  Tensor x = strings({"Monday", "monday", "gr\xc3\xbc\xc3\x9f \xd0\xb6", "\xff"}), stop = strings({"monday"});
  Tensor y = runOp("string_normalizer", {x, stop}, upper)[0];
  // Simple mappings keep the sharp s, as it has no single upper-case letter in C.UTF-8.
  EXPECT_THAT(read(y), ElementsAre("MONDAY", "GR\xc3\x9c\xc3\x9f \xd0\x96", "\xff"));
  EXPECT_THAT(y.dims, ElementsAre(3));
  AttrList insensitive;
  y = runOp("string_normalizer", {strings({"MONDAY", "tuesday"}, {1, 2}), stop}, insensitive)[0];
  EXPECT_THAT(read(y), ElementsAre("tuesday"));
  EXPECT_THAT(y.dims, ElementsAre(1, 1));
  EXPECT_THAT(read(runOp("string_normalizer", {strings({"monday"}), stop}, insensitive)[0]), ElementsAre(""));
  EXPECT_THAT(refusal("string_normalizer", {strings({"a", "b"}, {2, 1})}), HasSubstr("must be 1"));
}

TEST_F(Text, FullMatch) {
  AttrList attrs;
  attrs.set("pattern", "a+(b|c)?");
  Tensor y = runOp("regex_full_match", {strings({"aab", "aabc", "", "a"})}, attrs)[0];
  EXPECT_THAT(std::vector<uint8_t>(y.as<uint8_t>(), y.as<uint8_t>() + 4), ElementsAre(1, 0, 0, 1));
  AttrList broken, huge;
  broken.set("pattern", "a(");
  EXPECT_THAT(refusal("regex_full_match", {strings({"a"})}, broken), HasSubstr("missing )"));
  huge.set("pattern", "((a{1,100}){1,100}){1,100}");
  EXPECT_THAT(refusal("regex_full_match", {strings({"a"})}, huge), HasSubstr("RE2"));
}

TEST_F(Text, CastsReadWhatTheyWrite) {
  AttrList toString, toFloat, toInt, toBool;
  toString.set("to", int64_t(DType::String));
  toFloat.set("to", int64_t(DType::F32));
  toInt.set("to", int64_t(DType::I32));
  toBool.set("to", int64_t(DType::Bool));
  Tensor x = floats({0.1f, 1, -3e20f, NAN, -INFINITY}, {5});
  Tensor text = runNamed("cast_to_string", {x}, toString)[0];
  EXPECT_THAT(read(text), ElementsAre("0.1", "1", "-3e+20", "NaN", "-INF"));
  Tensor back = runNamed("cast_from_string", {text}, toFloat)[0];
  EXPECT_EQ(0, std::memcmp(back.bytes.data(), x.bytes.data(), 12));
  EXPECT_TRUE(std::isnan(back.as<float>()[3]));
  EXPECT_EQ(back.as<float>()[4], -INFINITY);
  Tensor whole =
      runNamed("cast_from_string", {strings({" 42 ", "+7", "-2.9", "1e3", "99999999999"})}, toInt)[0];
  EXPECT_THAT(std::vector<int32_t>(whole.as<int32_t>(), whole.as<int32_t>() + 5),
              ElementsAre(42, 7, -2, 1000, INT32_MAX));
  EXPECT_EQ(*runNamed("cast_from_string", {strings({"3"})}, toBool)[0].as<uint8_t>(), 1);
  EXPECT_EQ(run.refusal, "");
  for (const char *bad : {"", "abc", "1,5", "--1", "0x10", "1 2"}) {
    run.refusal.clear();
    runNamed("cast_from_string", {strings({bad})}, toFloat);
    EXPECT_EQ(run.refusal, "'" + std::string(bad) + "' is no number");
  }
  EXPECT_THAT(refusal("cast",
                      {
                          strings({"1"}),
                      },
                      AttrList().set("to", int64_t(DType::U4))),
              HasSubstr("plain numbers only"));
}

TEST_F(Text, LabelsGramsAndDistinctStrings) {
  AttrList labels;
  labels.set("values_int64s", std::vector<int64_t>{1, 2, 3}).set("default_int64", 42);
  Tensor y = runOp("label_encoder", {strings({"b", "x", "a"}), strings({"a", "b", "a"})}, labels)[0];
  EXPECT_THAT(std::vector<int64_t>(y.as<int64_t>(), y.as<int64_t>() + 3), ElementsAre(2, 42, 3));
  AttrList keys;
  keys.set("keys_int64s", std::vector<int64_t>{5, 6});
  EXPECT_THAT(read(runOp("label_encoder", {indices({6, 7, 5}), {}, strings({"five", "six"}), strings({"?"})},
                         keys)[0]),
              ElementsAre("six", "?", "five"));
  EXPECT_THAT(refusal("label_encoder", {strings({"a"})}, labels), HasSubstr("type of the operand"));
  AttrList grams;
  grams.set("mode", "TF")
      .set("min_gram_length", 1)
      .set("max_gram_length", 2)
      .set("max_skip_count", int64_t(0));
  grams.set("ngram_counts", std::vector<int64_t>{0, 2}).set("ngram_indexes", std::vector<int64_t>{0, 1, 2});
  Tensor counts =
      runOp("tf_idf_vectorizer", {strings({"a", "b", "a", "b"}), strings({"a", "c", "a", "b"})}, grams)[0];
  EXPECT_THAT(std::vector<float>(counts.as<float>(), counts.as<float>() + 3), ElementsAre(2, 0, 2));
  Tensor distinct = runOp("unique", {strings({"b", "a", "b", ""})}, {}, 4)[0];
  EXPECT_THAT(read(distinct), ElementsAre("", "a", "b"));
}

TEST_F(Text, StringsMoveLikeOtherElements) {
  Tensor x = strings({"a", "bb", "ccc", "d"}, {2, 2});
  EXPECT_THAT(read(runOp("transpose", {x})[0]), ElementsAre("a", "ccc", "bb", "d"));
  EXPECT_THAT(read(runOp("gather", {x, index(1)})[0]), ElementsAre("ccc", "d"));
  EXPECT_THAT(read(runOp("concat", {x, x}, AttrList().set("axis", 1))[0]),
              ElementsAre("a", "bb", "a", "bb", "ccc", "d", "ccc", "d"));
  EXPECT_THAT(read(runOp("pad", {x, indices({0, 1, 0, 0})})[0]), ElementsAre("", "a", "bb", "", "ccc", "d"));
}

TEST(Strings, OperatorsOnNumbersRefuseThem) {
  for (const OpEntry &op : allOps()) {
    TensorInfo x = TensorInfo::make(DType::String, {Dim(2)});
    std::vector<TensorInfo> in(3, x);
    InferContext ctx;
    ctx.in = in;
    ctx.out.resize(1);
    if (!op.takesStrings)
      EXPECT_EQ(int(inferWith(op, ctx)), int(InferStatus::Error)) << op.name;
  }
}

} // namespace
} // namespace dspark::test
