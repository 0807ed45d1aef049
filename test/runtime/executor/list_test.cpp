// Sequences, optionals, maps and strings in plans built by hand, against values worked out here.
#include "runtime/executor/Session.h"
#include "test/runtime/PlanBuilder.h"
#include <functional>
#include <gmock/gmock.h>

namespace dspark {
namespace {

using test::PlanBuilder;
using testing::ElementsAre;
using testing::HasSubstr;

class ListTest : public testing::Test {
protected:
  void build(const std::function<void(PlanBuilder &)> &fill) {
    session.reset();
    std::string path = folder.file("p" + std::to_string(++plans) + ".dsp");
    PlanBuilder builder(path);
    fill(builder);
    builder.finish();
    auto file = PlanFile::open(path);
    ASSERT_TRUE(file.isOk()) << file.status().message();
    auto program = Program::create(*file);
    ASSERT_TRUE(program.isOk()) << program.status().message();
    auto made = Session::create(*program, {});
    ASSERT_TRUE(made.isOk()) << made.status().message();
    session = std::move(*made);
  }
  // Lends [n] tensors that the test owns.
  BorrowedValue floats(std::vector<float> data) {
    return lendTensor(DType::F32, data, {int64_t(data.size())});
  }
  BorrowedValue ints(std::vector<int64_t> data) {
    return lendTensor(DType::I64, data, {int64_t(data.size())});
  }
  BorrowedValue integer(int64_t value) { return lendTensor(DType::I64, std::vector<int64_t>{value}, {}); }
  BorrowedValue strings(const std::vector<std::string> &texts) {
    const auto &kept = textStore.emplace_back(texts);
    std::vector<StringElement> views;
    for (const std::string &text : kept)
      views.push_back(std::string_view(text));
    return lendTensor(DType::String, views, {int64_t(texts.size())});
  }
  BorrowedValue list(std::vector<BorrowedValue> items) {
    const auto &kept = itemStore.emplace_back(std::move(items));
    return {{}, true, kept.data(), kept.size()};
  }
  Status run(const std::vector<BorrowedValue> &inputs) {
    return session->run(std::span<const BorrowedValue>(inputs));
  }

  template <typename T> static std::vector<T> read(const TensorView &view) {
    return {view.as<T>(), view.as<T>() + view.elements()};
  }
  std::vector<std::vector<float>> items(size_t k = 0) {
    std::vector<std::vector<float>> all;
    for (const OutputValue &item : session->outputValue(k).items)
      all.push_back(read<float>(item.tensor));
    return all;
  }
  std::vector<std::string> texts(size_t k = 0) {
    std::vector<std::string> all;
    for (StringElement text : read<StringElement>(session->output(k)))
      all.emplace_back(std::string_view(text));
    return all;
  }

  test::TemporaryFolder folder;
  int plans = 0;
  std::unique_ptr<Session> session;

private:
  template <typename T>
  BorrowedValue lendTensor(DType type, const std::vector<T> &data, std::vector<int64_t> dims) {
    auto bytes = std::as_bytes(std::span(data));
    auto &kept = dataStore.emplace_back(bytes.begin(), bytes.end());
    kept.resize(std::max<size_t>(kept.size(), 16));
    const auto &keptDims = dimStore.emplace_back(std::move(dims));
    return {{kept.data(), type, int32_t(keptDims.size()), keptDims.data(), nullptr}, false, nullptr, 0};
  }
  std::deque<std::vector<std::byte>> dataStore;
  std::deque<std::vector<int64_t>> dimStore;
  std::deque<std::vector<std::string>> textStore;
  std::deque<std::vector<BorrowedValue>> itemStore;
};

std::unique_ptr<fb::ValueTypeT> tensorType(DType type, int rank = -1) {
  auto made = std::make_unique<fb::ValueTypeT>();
  made->dtype = uint8_t(type);
  made->rank = rank;
  made->dims.assign(size_t(std::max(rank, 0)), -1);
  return made;
}
std::unique_ptr<fb::ValueTypeT> listType(fb::TypeKind kind, std::unique_ptr<fb::ValueTypeT> item) {
  auto made = std::make_unique<fb::ValueTypeT>();
  made->kind = kind;
  made->items.push_back(std::move(item));
  return made;
}
int listInput(PlanBuilder &b, const std::string &name, fb::TypeKind kind = fb::TypeKind::Sequence) {
  int id = b.input(name, DType::Undefined, {});
  b.plan.values[size_t(id)]->type = listType(kind, tensorType(DType::F32));
  return id;
}
int listStep(PlanBuilder &b, const std::string &op, std::vector<int> inputs) {
  int result = b.temp();
  b.step(fb::StepKind::List, op, std::move(inputs), {result});
  return result;
}

TEST_F(ListTest, PositionsFromDataAndFromConstants) {
  build([](PlanBuilder &b) {
    int s = listInput(b, "s"), x = b.input("x", DType::F32, {b.symbol("n")});
    int p = b.input("p", DType::I64, {});
    int grown = listStep(b, "insert", {s, b.kernel("unary", {x}, "neg"), p});
    b.output(grown, "grown");
    b.output(b.kernel("unary", {listStep(b, "at", {grown, p})}, "abs"), "item");
    b.output(listStep(b, "length", {listStep(b, "erase", {grown})}), "length");
    b.output(listStep(b, "at", {grown, b.constant<int64_t>(DType::I64, {}, {-1})}), "last");
  });
  BorrowedValue s = list({floats({1}), floats({2, 3})}), x = floats({7, 8, 9});
  for (int64_t p : {0, 2, -1}) {
    Status status = run({s, x, integer(p)});
    ASSERT_TRUE(status.isOk()) << status.message();
    std::vector<std::vector<float>> expected = {{1}, {2, 3}};
    expected.insert(expected.begin() + (p < 0 ? p + 2 : p), {-7, -8, -9});
    EXPECT_EQ(items(), expected);
    EXPECT_EQ(read<float>(session->output(1)).size(), expected[size_t(p < 0 ? p + 3 : p)].size());
    EXPECT_EQ(read<int64_t>(session->output(2))[0], 2);
    EXPECT_EQ(read<float>(session->output(3)), expected.back());
  }
  EXPECT_THAT(run({s, x, integer(3)}).message(), HasSubstr("position 3 is outside a list of 2"));
  EXPECT_THAT(run({list({}), x, integer(-1)}).message(), HasSubstr("outside a list of 0"));
  EXPECT_TRUE(run({list({}), x, integer(0)}).isOk());
}

TEST_F(ListTest, InputsAreCheckedAndCopiedOut) {
  build([](PlanBuilder &b) {
    int s = listInput(b, "s", fb::TypeKind::Optional);
    b.output(s, "same");
    b.plan.values[size_t(s)]->type = listType(fb::TypeKind::Optional, tensorType(DType::F32, 1));
  });
  BorrowedValue x = floats({1, 2});
  ASSERT_TRUE(run({list({x})}).isOk());
  EXPECT_THAT(items(), ElementsAre(std::vector<float>{1, 2}));
  EXPECT_NE(session->outputValue(0).items[0].tensor.data, x.tensor.data)
      << "the caller's memory is only lent";
  ASSERT_TRUE(run({list({})}).isOk());
  EXPECT_TRUE(session->outputValue(0).isList && items().empty());
  EXPECT_EQ(run({list({x, x})}).message(), "input 's' has 2 items, expected at most 1");
  EXPECT_EQ(run({list({ints({1})})}).message(), "input 's'[0] has type i64, expected f32");
  EXPECT_EQ(run({x}).message(), "input 's' is a tensor, expected a list of items");
  EXPECT_EQ(run({list({list({})})}).message(), "input 's'[0] is a list, expected a tensor");
}

TEST_F(ListTest, CutAndJoined) {
  build([](PlanBuilder &b) {
    int x = b.input("x", DType::F32, {b.symbol("m"), b.symbol("n")}),
        sizes = b.input("sizes", DType::I64, {b.symbol("k")});
    int rows = b.temp();
    PlanBuilder::attr(b.step(fb::StepKind::List, "split", {x}, {rows}), "keepdims", std::vector<int64_t>{0});
    b.output(rows, "rows");
    int parts = b.temp(), back = b.temp(), stacked = b.temp();
    PlanBuilder::attr(b.step(fb::StepKind::List, "split", {x, sizes}, {parts}), "axis",
                      std::vector<int64_t>{1});
    PlanBuilder::attr(b.step(fb::StepKind::List, "concat", {parts}, {back}), "axis",
                      std::vector<int64_t>{-1});
    b.output(back, "back");
    fb::StepT &stack = b.step(fb::StepKind::List, "concat", {rows}, {stacked});
    PlanBuilder::attr(stack, "axis", std::vector<int64_t>{1});
    PlanBuilder::attr(stack, "new_axis", std::vector<int64_t>{1});
    b.output(stacked, "stacked");
  });
  BorrowedValue x = floats({1, 2, 3, 4, 5, 6});
  int64_t dims[] = {2, 3};
  x.tensor.rank = 2, x.tensor.dims = dims;
  Status status = run({x, ints({1, 0, 2})});
  ASSERT_TRUE(status.isOk()) << status.message();
  EXPECT_THAT(items(), ElementsAre(ElementsAre(1, 2, 3), ElementsAre(4, 5, 6)));
  EXPECT_THAT(read<float>(session->output(1)), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(read<float>(session->output(2)), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(run({x, ints({1, 1})}).message(), HasSubstr("add up to 2, expected 3"));
  EXPECT_THAT(run({x, ints({-1, 4})}).message(), HasSubstr("one is -1"));
  dims[0] = 0;
  EXPECT_THAT(run({x, ints({3})}).message(), HasSubstr("the list is empty"));
}

TEST_F(ListTest, LoopsCollectAndPassOn) {
  // for i in range(n): list.append(item + i), item = -item; the first items must not move or change later.
  build([](PlanBuilder &b) {
    int n = b.input("n", DType::I64, {}), s = listInput(b, "s"), x = b.input("x", DType::F32, {b.number(2)});
    int start = b.kernel("unary", {x}, "neg"), all = b.temp(), last = b.temp();
    fb::StepT &loop = b.step(fb::StepKind::Loop, "loop", {n, -1, s, start}, {all, last});
    PlanBuilder::attr(loop, "num_carried", std::vector<int64_t>{2});
    int i = b.temp(), condition = b.temp(), list = b.temp(), item = b.temp();
    b.enter(loop).args = {i, condition, list, item};
    fb::StepT &toFloat = b.step(fb::StepKind::Kernel, "cast", {i}, {b.temp()});
    PlanBuilder::attr(toFloat, "to", std::vector<int64_t>{int64_t(DType::F32)});
    int sum = b.kernel("binary", {item, toFloat.outputs[0]}, "add");
    b.leave({condition, listStep(b, "insert", {list, sum}), b.kernel("unary", {item}, "neg")});
    b.output(all, "all");
    b.output(last, "last");
    b.output(b.kernel("unary", {b.kernel("binary", {x, x}, "add")}, "exp"), "other");
  });
  BorrowedValue s = list({floats({100})}), x = floats({1, 2});
  for (int round = 0; round < 2; ++round) {
    Status status = run({integer(3), s, x});
    ASSERT_TRUE(status.isOk()) << status.message();
    EXPECT_THAT(items(),
                ElementsAre(ElementsAre(100), ElementsAre(-1, -2), ElementsAre(2, 3), ElementsAre(1, 0)));
    EXPECT_THAT(read<float>(session->output(1)), ElementsAre(1, 2));
  }
  ASSERT_TRUE(run({integer(0), s, x}).isOk());
  EXPECT_THAT(items(), ElementsAre(ElementsAre(100)));
  EXPECT_THAT(read<float>(session->output(1)), ElementsAre(-1, -2))
      << "without an iteration the operand is the result, and its buffer is not given to others";
}

TEST_F(ListTest, RowsAreMaps) {
  build([](PlanBuilder &b) {
    int x = b.input("x", DType::F32, {b.symbol("m"), b.number(2)});
    b.output(listStep(b, "rows", {x, b.constant<int64_t>(DType::I64, {2}, {5, 6})}), "maps");
  });
  BorrowedValue x = floats({1, 2, 3, 4});
  int64_t dims[] = {2, 2};
  x.tensor.rank = 2, x.tensor.dims = dims;
  ASSERT_TRUE(run({x}).isOk());
  const OutputValue &second = session->outputValue(0).items.at(1);
  EXPECT_THAT(read<int64_t>(second.items.at(0).tensor), ElementsAre(5, 6));
  EXPECT_THAT(read<float>(second.items.at(1).tensor), ElementsAre(3, 4));
}

TEST_F(ListTest, Strings) {
  build([](PlanBuilder &b) {
    int n = b.symbol("n"), x = b.input("x", DType::String, {n}), k = b.input("k", DType::I64, {n});
    // places of "left" and "", then their characters
    int c = b.constant<uint64_t>(DType::String, {2}, {32, 4, 36, 0, 0x7466656c /* left */});
    int both = b.kernel("string_concat", {x, b.kernel("gather", {c, k})});
    b.output(both, "both");
    b.output(x, "same");
  });
  for (int round = 0; round < 2; ++round) {
    auto given = std::make_unique<std::vector<std::string>>(
        std::vector<std::string>{"a", "", "longer than any small string"});
    Status status = run({strings(*given), ints({0, 0, 1})});
    ASSERT_TRUE(status.isOk()) << status.message();
    EXPECT_THAT(texts(), ElementsAre("aleft", "left", "longer than any small string"));
    EXPECT_THAT(texts(1), ElementsAre("a", "", "longer than any small string"));
  }
  BorrowedValue dangling = strings({"x"});
  static_cast<StringElement *>(dangling.tensor.data)->data = nullptr;
  EXPECT_THAT(run({dangling, ints({0})}).message(), HasSubstr("1 bytes and no data"));
}

TEST_F(ListTest, StringsThatMeanNothingNameTheNode) {
  build([](PlanBuilder &b) {
    int x = b.input("x", DType::String, {b.symbol("n")}), y = b.temp();
    PlanBuilder::attr(b.step(fb::StepKind::Kernel, "cast", {x}, {y}), "to",
                      std::vector<int64_t>{int64_t(DType::F32)});
    b.output(y, "y");
  });
  EXPECT_EQ(run({strings({"1", "one"})}).message(), "node 'cast_1' (cast): 'one' is no number");
  ASSERT_TRUE(run({strings({"1", "2e1"})}).isOk()) << "a failed run leaves the session usable";
  EXPECT_THAT(read<float>(session->output(0)), ElementsAre(1, 20));
}

TEST_F(ListTest, PlansThatAreWrong) {
  auto refusal = [&](const std::function<void(PlanBuilder &)> &fill) {
    std::string path = folder.file("bad" + std::to_string(++plans) + ".dsp");
    PlanBuilder b(path);
    fill(b);
    b.finish();
    auto file = PlanFile::open(path);
    if (!file.isOk())
      return file.status().message();
    auto program = Program::create(*file);
    if (!program.isOk())
      return program.status().message();
    auto made = Session::create(*program, {});
    session = std::move(*made);
    return run({list({floats({1})})}).message();
  };
  EXPECT_THAT(refusal([](PlanBuilder &b) { b.output(listStep(b, "shuffle", {listInput(b, "s")}), "y"); }),
              HasSubstr("no operation on lists"));
  EXPECT_THAT(refusal([](PlanBuilder &b) { b.output(listStep(b, "insert", {listInput(b, "s")}), "y"); }),
              HasSubstr("1 operands"));
  EXPECT_THAT(refusal([](PlanBuilder &b) { b.output(b.kernel("unary", {listInput(b, "s")}, "neg"), "y"); }),
              HasSubstr("a list of 1 values, expected a tensor"));
  EXPECT_THAT(refusal([](PlanBuilder &b) {
                int s = listInput(b, "s");
                for (int i = 0; i < 40; ++i) // doubles, and nests
                  s = listStep(b, "construct", {s, s});
                b.output(s, "y");
              }),
              HasSubstr("too large"));
  EXPECT_THAT(refusal([](PlanBuilder &b) {
                int s = listInput(b, "s");
                b.plan.values[size_t(s)]->type->items.clear();
                b.output(s, "y");
              }),
              HasSubstr("0 items"));
  EXPECT_THAT(refusal([](PlanBuilder &b) {
                listInput(b, "s");
                b.output(b.constant<uint64_t>(DType::String, {1}, {17, 1}), "y"); // outside its 16 bytes
              }),
              HasSubstr("expected to end within 16"));
}

TEST_F(ListTest, OldReadersAreToldOnlyWhereItMatters) {
  auto minimal = [&](const std::function<void(PlanBuilder &)> &fill) {
    std::string path = folder.file("v" + std::to_string(++plans) + ".dsp");
    PlanBuilder b(path);
    fill(b);
    b.finish();
    PlanHeader header;
    FILE *file = fopen(path.c_str(), "rb");
    EXPECT_EQ(fread(&header, sizeof header, 1, file), 1u);
    fclose(file);
    return header.minimalReader;
  };
  EXPECT_EQ(minimal([](PlanBuilder &b) {
              b.output(b.kernel("unary", {b.input("x", DType::F32, {})}, "neg"), "y");
            }),
            kPlanMinimalReader);
  EXPECT_EQ(minimal([](PlanBuilder &b) { b.output(listInput(b, "s"), "y"); }), kMinorOfLists);
  EXPECT_EQ(minimal([](PlanBuilder &b) { b.output(b.input("x", DType::String, {}), "y"); }), kMinorOfLists);
}

} // namespace
} // namespace dspark
