// Plans built by hand, run with real kernels, against values worked out here.
#include "runtime/executor/Session.h"
#include "test/runtime/PlanBuilder.h"
#include <bit>
#include <functional>
#include <gmock/gmock.h>

namespace dspark {
namespace {

using test::PlanBuilder;
using test::TemporaryFolder;
using testing::ElementsAre;
using testing::HasSubstr;

// A dense input that owns its data.
template <typename T> struct Tensor {
  DType type;
  std::vector<int64_t> dims;
  std::vector<T> data;
  BorrowedTensor lend() { return {data.data(), type, int32_t(dims.size()), dims.data(), nullptr}; }
};
Tensor<float> floats(std::vector<int64_t> dims, std::vector<float> data) { return {DType::F32, dims, data}; }
Tensor<int64_t> ints(std::vector<int64_t> dims, std::vector<int64_t> data) {
  return {DType::I64, dims, data};
}
Tensor<uint8_t> bools(std::vector<uint8_t> data) { return {DType::Bool, {}, data}; }

class SessionTest : public testing::Test {
protected:
  // Opens the plan that `fill` builds.
  void build(const std::function<void(PlanBuilder &)> &fill, SessionOptions options = {}) {
    session.reset();
    std::string path = folder.file("p" + std::to_string(++plans) + ".dsp");
    PlanBuilder builder(path);
    fill(builder);
    builder.finish();
    auto file = PlanFile::open(path);
    ASSERT_TRUE(file.isOk()) << file.status().message();
    auto program = Program::create(*file);
    ASSERT_TRUE(program.isOk()) << program.status().message();
    auto made = Session::create(*program, options);
    ASSERT_TRUE(made.isOk()) << made.status().message();
    session = std::move(*made);
  }
  template <typename... Tensors> Status run(Tensors &...tensors) {
    std::vector<BorrowedTensor> lent = {tensors.lend()...};
    return session->run(lent);
  }
  template <typename T> std::vector<T> output(size_t k = 0) {
    const TensorView &view = session->output(k);
    return {view.as<T>(), view.as<T>() + view.elements()};
  }
  std::vector<int64_t> outputDims(size_t k = 0) {
    const TensorView &view = session->output(k);
    return {view.dims, view.dims + view.rank};
  }

  TemporaryFolder folder;
  int plans = 0;
  std::unique_ptr<Session> session;
};

#define ASSERT_RUNS(...)                                                                                     \
  do {                                                                                                       \
    Status status_ = run(__VA_ARGS__);                                                                       \
    ASSERT_TRUE(status_.isOk()) << status_.message();                                                        \
  } while (false)

// 20 times 1.5 as a plan stores it: a line of 16, and one of 4 and zeros.
int fillInRuns(PlanBuilder &b, uint64_t lastCount = 1) {
  const auto number = std::bit_cast<uint32_t>(1.5f);
  const uint64_t pair = uint64_t(number) << 32 | number;
  std::vector<uint64_t> runs = {1, pair, pair, pair, pair, pair, pair, pair, pair, lastCount, pair, pair};
  runs.resize(18);
  int fill = b.constant<uint64_t>(DType::F32, {20}, runs);
  b.plan.values[size_t(fill)]->blob->expanded = 80;
  return fill;
}

TEST_F(SessionTest, ConstantsStoredAsRuns) {
  build([](PlanBuilder &b) {
    int x = b.input("x", DType::F32, {b.number(1)});
    b.output(b.kernel("binary", {x, fillInRuns(b)}, "add"), "y");
  });
  auto one = floats({1}, {1});
  ASSERT_RUNS(one);
  EXPECT_THAT(output<float>(), testing::Each(2.5f));
  EXPECT_THAT(outputDims(), ElementsAre(20));
}

TEST(Program, RefusesRunsThatMakeOtherBytes) {
  TemporaryFolder folder;
  for (uint64_t count : {uint64_t(0), uint64_t(2), UINT64_MAX, UINT64_MAX - 1}) {
    PlanBuilder b(folder.file("p.dsp"));
    int x = b.input("x", DType::F32, {b.number(1)});
    b.output(b.kernel("binary", {x, fillInRuns(b, count)}, "add"), "y");
    b.finish();
    Status status = Program::create(*PlanFile::open(folder.file("p.dsp"))).status();
    EXPECT_EQ(status.code(), Code::CorruptFile);
    EXPECT_THAT(status.message(), HasSubstr("expected whole runs of 72 bytes with 2 lines"));
  }
}

TEST_F(SessionTest, SymbolicShapes) {
  build([](PlanBuilder &b) {
    int x = b.input("x", DType::F32, {b.symbol("batch"), b.number(3)});
    int c = b.constant<float>(DType::F32, {3}, {1, 2, 3});
    b.output(b.kernel("unary", {b.kernel("binary", {x, c}, "add")}, "neg"), "y");
  });
  auto one = floats({1, 3}, {10, 20, 30}), two = floats({2, 3}, {1, 1, 1, 2, 2, 2});
  for (int round = 0; round < 2; ++round) {
    ASSERT_RUNS(one);
    EXPECT_THAT(output<float>(), ElementsAre(-11, -22, -33));
    ASSERT_RUNS(two);
    EXPECT_THAT(output<float>(), ElementsAre(-2, -3, -4, -3, -4, -5));
    EXPECT_THAT(outputDims(), ElementsAre(2, 3));
  }
  EXPECT_EQ(session->memory().arenaBytes, 64) << "the negation works in place";
  auto none = floats({0, 3}, {});
  ASSERT_RUNS(none);
  EXPECT_THAT(outputDims(), ElementsAre(0, 3));
}

TEST_F(SessionTest, InputsThatDoNotFit) {
  build([](PlanBuilder &b) {
    int batch = b.symbol("batch");
    int x = b.input("x", DType::F32, {batch, b.number(3)});
    int y = b.input("y", DType::F32, {batch, b.number(3)});
    b.output(b.kernel("binary", {x, y}, "add"), "z");
  });
  auto x = floats({2, 3}, std::vector<float>(6)), y = floats({4, 3}, std::vector<float>(12));
  auto wide = floats({2, 5}, std::vector<float>(10)), flat = floats({6}, std::vector<float>(6));
  auto integers = ints({2, 3}, std::vector<int64_t>(6));
  EXPECT_EQ(run(x, y).message(), "input 'y': dim 0 is 4, expected 2 (batch) as in input 'x'");
  EXPECT_EQ(run(wide, x).message(), "input 'x': dim 1 is 5, expected 3");
  EXPECT_EQ(run(flat, x).message(), "input 'x' has rank 1, expected 2");
  EXPECT_EQ(run(integers, x).message(), "input 'x' has type i64, expected f32");
  EXPECT_EQ(run(x).message(), "there are 1 inputs, expected 2");
  EXPECT_EQ(run(x).code(), Code::InvalidArgument);
  ASSERT_RUNS(x, x);
}

// Kernels multiply some dims of a tensor without elements.
TEST_F(SessionTest, EmptyTensorsOfAbsurdDims) {
  build([](PlanBuilder &b) {
    int x = b.input("x", DType::F32, {b.symbol("n"), b.symbol("m"), b.symbol("k")});
    b.output(b.kernel("reduce", {x}, "sum"), "y");
  });
  auto empty = floats({0, 3, 5}, {}), absurd = floats({0, int64_t(1) << 40, int64_t(1) << 40}, {});
  ASSERT_RUNS(empty);
  EXPECT_THAT(output<float>(), ElementsAre(0.f));
  EXPECT_THAT(run(absurd).message(), HasSubstr("larger than any memory"));
}

TEST_F(SessionTest, StridedInputsAreCopied) {
  build([](PlanBuilder &b) {
    int x = b.input("x", DType::F32, {b.symbol("m"), b.symbol("n")});
    b.output(b.kernel("unary", {x}, "neg"), "y");
  });
  float data[] = {1, 2, 3, 4, 5, 6};
  int64_t dims[] = {3, 2}, strides[] = {1, 3}; // the transpose of [2, 3]
  BorrowedTensor lent{data, DType::F32, 2, dims, strides};
  ASSERT_TRUE(session->run({&lent, 1}).isOk());
  EXPECT_THAT(output<float>(), ElementsAre(-1, -4, -2, -5, -3, -6));
  int64_t backwards[] = {-2, -1};
  lent = {data + 5, DType::F32, 2, dims, backwards};
  ASSERT_TRUE(session->run({&lent, 1}).isOk());
  EXPECT_THAT(output<float>(), ElementsAre(-6, -5, -4, -3, -2, -1));
}

TEST_F(SessionTest, ViewsShareTheirBuffer) {
  build([](PlanBuilder &b) {
    int m = b.symbol("m"), n = b.symbol("n");
    int x = b.input("x", DType::F32, {m, n});
    int shape = b.temp();
    b.step(fb::StepKind::Dims, "", {}, {shape}).dims = {b.expression(DimOp::Mul, 0, m, n)};
    int y = b.kernel("reshape", {b.kernel("unary", {x}, "neg"), shape});
    b.output(y, "y");
    b.output(b.kernel("reshape", {x, shape}), "same");
  });
  auto x = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  ASSERT_RUNS(x);
  EXPECT_THAT(output<float>(), ElementsAre(-1, -2, -3, -4, -5, -6));
  EXPECT_THAT(outputDims(), ElementsAre(6));
  EXPECT_THAT(output<float>(1), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_NE(session->output(1).data, x.data.data()) << "outputs never point into the caller's memory";
  EXPECT_EQ(session->memory().arenaBytes, 64);
}

TEST_F(SessionTest, DimsAsResult) {
  build([](PlanBuilder &b) {
    int n = b.symbol("n");
    b.input("x", DType::F32, {n});
    int shape = b.temp();
    b.step(fb::StepKind::Dims, "", {}, {shape}).dims = {b.expression(DimOp::Add, 0, n, n), n};
    b.output(shape, "shape");
  });
  auto x = floats({5}, std::vector<float>(5));
  ASSERT_RUNS(x);
  EXPECT_THAT(output<int64_t>(), ElementsAre(10, 5));
}

// y = condition ? -x : reshape(x + 1, [m*n]): the branches differ in rank.
void addIf(PlanBuilder &b, int condition, int x) {
  int y = b.temp();
  fb::StepT &step = b.step(fb::StepKind::If, "if", {condition}, {y});
  b.enter(step);
  b.leave({b.kernel("unary", {x}, "neg")});
  b.enter(step);
  int one = b.constant<float>(DType::F32, {}, {1}), all = b.constant<int64_t>(DType::I64, {1}, {-1});
  b.leave({b.kernel("reshape", {b.kernel("binary", {x, one}, "add"), all})});
  b.output(b.kernel("binary", {y, b.constant<float>(DType::F32, {}, {10})}, "mul"), "y");
}

TEST_F(SessionTest, IfOnData) {
  build([](PlanBuilder &b) {
    int condition = b.input("c", DType::Bool, {});
    addIf(b, condition, b.input("x", DType::F32, {b.symbol("m"), b.symbol("n")}));
  });
  auto yes = bools({1}), no = bools({0});
  auto x = floats({1, 2}, {1, 2});
  for (int round = 0; round < 3; ++round) {
    ASSERT_RUNS(yes, x);
    EXPECT_THAT(output<float>(), ElementsAre(-10, -20));
    EXPECT_THAT(outputDims(), ElementsAre(1, 2));
    ASSERT_RUNS(no, x);
    EXPECT_THAT(output<float>(), ElementsAre(20, 30));
    EXPECT_THAT(outputDims(), ElementsAre(2));
  }
}

TEST_F(SessionTest, IfOnAConstant) {
  build([](PlanBuilder &b) {
    int x = b.input("x", DType::F32, {b.symbol("m"), b.symbol("n")});
    addIf(b, b.constant<uint8_t>(DType::Bool, {}, {0}), x);
  });
  auto x = floats({1, 2}, {1, 2});
  ASSERT_RUNS(x);
  EXPECT_THAT(output<float>(), ElementsAre(20, 30));
}

TEST_F(SessionTest, ContentsAsShape) {
  build([](PlanBuilder &b) {
    int x = b.input("x", DType::F32, {b.symbol("n")});
    int shape = b.input("shape", DType::I64, {b.symbol("rank")});
    b.output(b.kernel("unary", {b.kernel("reshape", {b.kernel("unary", {x}, "neg"), shape})}, "abs"), "y");
  });
  auto x = floats({6}, {1, 2, 3, 4, 5, 6});
  // More shapes than a session keeps continuations, twice.
  for (int round = 0; round < 2; ++round)
    for (int64_t ones = 0; ones < 8; ++ones)
      for (int64_t rows : {1, 2, 3, 6, -1}) {
        std::vector<int64_t> dims(size_t(ones), 1);
        dims.push_back(rows);
        dims.push_back(rows == -1 ? 2 : 6 / rows);
        auto shape = ints({int64_t(dims.size())}, dims);
        ASSERT_RUNS(x, shape);
        EXPECT_EQ(outputDims().back(), dims.back());
        EXPECT_THAT(output<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
      }
  auto bad = ints({2}, {4, 2});
  EXPECT_THAT(run(x, bad).message(), HasSubstr("node 'reshape_"));
}

TEST_F(SessionTest, DimsFromAKernel) {
  build([](PlanBuilder &b) {
    int x = b.input("x", DType::F32, {b.symbol("n")});
    int found = b.kernel("nonzero", {b.kernel("unary", {x}, "relu")});
    int count = b.symbol("count");
    b.plan.values[size_t(found)]->dims = {b.number(1), count};
    b.output(found, "where");
    int twice = b.temp();
    b.step(fb::StepKind::Dims, "", {}, {twice}).dims = {b.expression(DimOp::Add, 0, count, count)};
    b.output(twice, "twice");
  });
  auto x = floats({5}, {1, -1, 2, 0, 3}), none = floats({5}, {-1, -1, -2, 0, -3});
  for (int round = 0; round < 2; ++round) {
    ASSERT_RUNS(x);
    EXPECT_THAT(output<int64_t>(), ElementsAre(0, 2, 4));
    EXPECT_THAT(output<int64_t>(1), ElementsAre(6));
    ASSERT_RUNS(none);
    EXPECT_THAT(outputDims(), ElementsAre(1, 0));
    EXPECT_THAT(output<int64_t>(1), ElementsAre(0));
  }
}

// for (i = 0; i < trips && keep; ++i) { sum += x; keep = sum < limit; stacked.push(sum) }
void addLoop(PlanBuilder &b, int trips, int x, int start, bool reversed = false, int64_t axis = 0) {
  int sum = b.temp(), stacked = b.temp();
  fb::StepT &loop = b.step(fb::StepKind::Loop, "loop", {trips, -1, start}, {sum, stacked});
  PlanBuilder::attr(loop, "num_carried", std::vector<int64_t>{1});
  PlanBuilder::attr(loop, "has_cond", std::vector<int64_t>{1});
  PlanBuilder::attr(loop, "scan_output_directions", std::vector<int64_t>{reversed}, true);
  PlanBuilder::attr(loop, "scan_output_axes", std::vector<int64_t>{axis}, true);
  fb::BlockT &body = b.enter(loop);
  int iteration = b.temp(), condition = b.temp(), before = b.temp();
  body.args = {iteration, condition, before};
  int after = b.kernel("binary", {before, x}, "add");
  int first = b.kernel(
      "slice", {after, b.constant<int64_t>(DType::I64, {1}, {0}), b.constant<int64_t>(DType::I64, {1}, {1})});
  int scalar = b.kernel("reshape", {first, b.constant<int64_t>(DType::I64, {0}, {})});
  int keep = b.kernel("compare", {scalar, b.constant<float>(DType::F32, {}, {10})}, "lt");
  b.leave({keep, after, after});
  b.output(sum, "sum");
  b.output(stacked, "stacked");
}

TEST_F(SessionTest, Loop) {
  build([](PlanBuilder &b) {
    int trips = b.input("trips", DType::I64, {});
    int x = b.input("x", DType::F32, {b.symbol("n")});
    addLoop(b, trips, b.kernel("unary", {x}, "abs"), x);
  });
  auto x = floats({2}, {1, 2});
  for (int round = 0; round < 2; ++round) {
    auto three = ints({}, {3}), zero = ints({}, {0}), many = ints({}, {1000});
    ASSERT_RUNS(three, x);
    EXPECT_THAT(output<float>(), ElementsAre(4, 8));
    EXPECT_THAT(output<float>(1), ElementsAre(2, 4, 3, 6, 4, 8));
    EXPECT_THAT(outputDims(1), ElementsAre(3, 2));
    ASSERT_RUNS(zero, x);
    EXPECT_THAT(output<float>(), ElementsAre(1, 2));
    EXPECT_THAT(outputDims(1), ElementsAre(0, 2));
    ASSERT_RUNS(many, x);
    EXPECT_THAT(output<float>(), ElementsAre(10, 20)) << "the condition stops it";
    EXPECT_THAT(outputDims(1), ElementsAre(9, 2));
  }
}

TEST_F(SessionTest, LoopStacksAlongAnyAxis) {
  build([](PlanBuilder &b) {
    int x = b.input("x", DType::F32, {b.symbol("n")});
    addLoop(b, b.constant<int64_t>(DType::I64, {}, {3}), x, x, true, -1);
  });
  auto x = floats({2}, {1, 2});
  ASSERT_RUNS(x);
  EXPECT_THAT(outputDims(1), ElementsAre(2, 3));
  EXPECT_THAT(output<float>(1), ElementsAre(4, 3, 2, 8, 6, 4));
}

// The carried value grows in each iteration, and the two carried values swap places.
TEST_F(SessionTest, LoopWithGrowingAndSwappedValues) {
  build([](PlanBuilder &b) {
    int x = b.input("x", DType::F32, {b.symbol("n")});
    int y = b.input("y", DType::F32, {b.symbol("m")});
    int trips = b.constant<int64_t>(DType::I64, {}, {4});
    int grown = b.temp(), p = b.temp(), q = b.temp();
    fb::StepT &loop = b.step(fb::StepKind::Loop, "loop", {trips, -1, x, x, y}, {grown, p, q});
    PlanBuilder::attr(loop, "num_carried", std::vector<int64_t>{3});
    fb::BlockT &body = b.enter(loop);
    body.args = {b.temp(), b.temp(), b.temp(), b.temp(), b.temp()};
    int longer = b.temp();
    PlanBuilder::attr(b.step(fb::StepKind::Kernel, "concat", {body.args[2], y}, {longer}), "axis",
                      std::vector<int64_t>{0});
    b.leave({body.args[1], longer, body.args[4], body.args[3]});
    b.output(grown, "grown");
    b.output(p, "p");
    b.output(q, "q");
  });
  auto x = floats({1}, {1}), y = floats({2}, {2, 3});
  for (int round = 0; round < 2; ++round) {
    ASSERT_RUNS(x, y);
    EXPECT_THAT(output<float>(), ElementsAre(1, 2, 3, 2, 3, 2, 3, 2, 3));
    EXPECT_THAT(output<float>(1), ElementsAre(1));
    EXPECT_THAT(output<float>(2), ElementsAre(2, 3));
  }
}

// Scan: slices of one input forwards along axis 0, of the other backwards along axis 1.
TEST_F(SessionTest, ScanInputs) {
  build([](PlanBuilder &b) {
    int x = b.input("x", DType::F32, {b.symbol("t"), b.number(2)});
    int y = b.input("y", DType::F32, {b.number(2), b.symbol("t2")});
    int total = b.temp(), sums = b.temp();
    fb::StepT &loop = b.step(fb::StepKind::Loop, "scan",
                             {-1, -1, b.constant<float>(DType::F32, {2}, {0, 0}), x, y}, {total, sums});
    PlanBuilder::attr(loop, "num_carried", std::vector<int64_t>{1});
    PlanBuilder::attr(loop, "num_scan_inputs", std::vector<int64_t>{2});
    PlanBuilder::attr(loop, "scan_input_axes", std::vector<int64_t>{0, 1}, true);
    PlanBuilder::attr(loop, "scan_input_directions", std::vector<int64_t>{0, 1}, true);
    fb::BlockT &body = b.enter(loop);
    body.args = {b.temp(), b.temp(), b.temp(), b.temp(), b.temp()};
    int sum = b.kernel("binary", {body.args[3], body.args[4]}, "add");
    b.leave({body.args[1], b.kernel("binary", {body.args[2], sum}, "add"), sum});
    b.output(total, "total");
    b.output(sums, "sums");
  });
  auto x = floats({3, 2}, {1, 2, 3, 4, 5, 6}), y = floats({2, 3}, {10, 20, 30, 40, 50, 60});
  ASSERT_RUNS(x, y);
  EXPECT_THAT(output<float>(1), ElementsAre(31, 62, 23, 54, 15, 46));
  EXPECT_THAT(output<float>(), ElementsAre(69, 162));
  auto shorter = floats({2, 2}, {10, 20, 30, 40});
  EXPECT_THAT(run(x, shorter).message(), HasSubstr("scan input 1 has length 2, expected 3"));
}

TEST_F(SessionTest, MemoryLimit) {
  SessionOptions options;
  options.memoryLimit = 1 << 20;
  build(
      [](PlanBuilder &b) {
        int x = b.input("x", DType::F32, {b.symbol("n"), b.number(1)});
        int y = b.input("y", DType::F32, {b.number(1), b.symbol("m")});
        b.output(b.kernel("binary", {x, y}, "add"), "z");
      },
      options);
  auto x = floats({1024, 1}, std::vector<float>(1024)), y = floats({1, 1024}, std::vector<float>(1024));
  Status status = run(x, y);
  EXPECT_EQ(status.code(), Code::OutOfMemory);
  EXPECT_THAT(status.message(), HasSubstr("node 'binary_1' (binary)"));
  auto small = floats({1, 8}, std::vector<float>(8, 1.f));
  ASSERT_RUNS(x, small); // the session is still good
}

TEST_F(SessionTest, UnknownOperatorsAreNamedTogether) {
  PlanBuilder b(folder.file("p.dsp"));
  int x = b.input("x", DType::F32, {b.number(1)});
  b.output(b.kernel("frobnicate", {b.kernel("defenestrate", {x})}), "y");
  b.finish();
  auto program = Program::create(*PlanFile::open(folder.file("p.dsp")));
  EXPECT_EQ(program.status().code(), Code::Unsupported);
  EXPECT_THAT(program.status().message(),
              HasSubstr("'defenestrate' (node 'defenestrate_1'), 'frobnicate' (node 'frobnicate_2')"));
}

TEST_F(SessionTest, SegmentsOfEarlierBranchesKeepTheirBuffers) {
  // a is alive across the If; b must not be placed over it in the continuation.
  build([](PlanBuilder &b) {
    int condition = b.input("c", DType::Bool, {});
    int x = b.input("x", DType::F32, {b.symbol("n")});
    int a = b.kernel("unary", {x}, "neg");
    addIf(b, condition, b.kernel("unary", {x}, "abs"));
    b.output(b.kernel("binary", {a, b.kernel("unary", {x}, "relu")}, "sub"), "z");
  });
  auto yes = bools({1}), no = bools({0});
  auto x = floats({2}, {1, -2});
  for (auto *c : {&yes, &no, &yes}) {
    ASSERT_RUNS(*c, x);
    EXPECT_THAT(output<float>(1), ElementsAre(-2, 2));
  }
}

// An embedding table held once, packed, that is the output projection too: w = [[1, 2], [0, 3], [2, 0]].
void addTiedEmbedding(PlanBuilder &b, size_t packedHalves) {
  std::vector<uint16_t> panel(packedHalves); // f16 [32 terms][16 columns]
  const std::pair<size_t, uint16_t> kHalves[] = {{0, 0x3c00}, {2, 0x4000}, {16, 0x4000}, {17, 0x4200}};
  for (auto [at, half] : kHalves)
    panel[at] = half;
  int tokens = b.input("tokens", DType::I64, {b.symbol("t")});
  int w = b.constant(DType::F32, {3, 2}, panel);
  b.plan.values[size_t(w)]->layout = "f16";
  int embedding = b.kernel("packed_rows", {tokens, w});
  PlanBuilder::attr(*b.block->steps.back(), "packed", "f16");
  int logits = b.kernel("matmul", {embedding, w});
  PlanBuilder::attr(*b.block->steps.back(), "packed", "f16");
  PlanBuilder::attr(*b.block->steps.back(), "trans_b", std::vector<int64_t>{1});
  b.output(embedding, "embedding");
  b.output(logits, "logits");
}

TEST_F(SessionTest, PackedEmbeddingIsTheOutputProjectionToo) {
  build([](PlanBuilder &b) { addTiedEmbedding(b, 512); });
  auto tokens = ints({2}, {1, 0});
  ASSERT_RUNS(tokens);
  EXPECT_THAT(output<float>(0), ElementsAre(0, 3, 1, 2));
  EXPECT_THAT(output<float>(1), ElementsAre(6, 9, 0, 5, 6, 2));
}

TEST_F(SessionTest, PackedRowsOfTooFewBytesAreRefused) {
  build([](PlanBuilder &b) { addTiedEmbedding(b, 511); });
  auto tokens = ints({2}, {1, 0});
  Status status = run(tokens);
  EXPECT_EQ(status.code(), Code::CorruptFile);
  EXPECT_THAT(status.message(),
              HasSubstr("operand 1 has 1022 bytes, expected 1024 as layout 'f16' of f32[3, 2]"));
}

} // namespace
} // namespace dspark
