// Reductions of every kind, type and ISA level against f64 (or exact integer) loops.
//
// Tolerance of f32 sums: parts of at most 4096 elements are summed in lanes, at the baseline 256 terms to a
// lane, each addition rounding once: 260 * eps * sum|x|, then the f64 join and one rounding of the result.
#include "kernels/common/numeric.h"
#include "test/kernels/shape_case.h"
#include <cmath>

namespace dspark {
namespace {

using namespace test;

constexpr double kEps = 1.0 / (1 << 24);

// By the scalar row, which takes every type.
Tensor reduceAny(std::vector<Tensor> in, const AttrList &attrs) {
  return runRow(*rowsOf("reduce").back(), in, attrs)[0];
}

struct Folded {
  double sum = 0, magnitude = 0, squares = 0, product = 1, top = -INFINITY, bottom = INFINITY,
         exponentials = 0;
  int64_t count = 0;
};

// Coordinates of the result for element k of x, as its index among kept dims.
std::vector<Folded> fold(const Tensor &x, const std::vector<bool> &reduced) {
  int64_t outputs = 1;
  for (size_t i = 0; i < x.dims.size(); ++i)
    outputs *= reduced[i] ? 1 : x.dims[i];
  std::vector<Folded> all(static_cast<size_t>(outputs));
  for (int64_t k = 0; k < x.elements(); ++k) {
    int64_t at = 0, stride = 1, rest = k;
    for (size_t i = x.dims.size(); i-- > 0; rest /= x.dims[i])
      if (!reduced[i]) {
        at += rest % x.dims[i] * stride;
        stride *= x.dims[i];
      }
    Folded &f = all[size_t(at)];
    double v = double(x.as<float>()[k]);
    f.sum += v;
    f.magnitude += std::fabs(v);
    f.squares += v * v;
    f.product *= v;
    f.top = std::max(f.top, v);
    f.bottom = std::min(f.bottom, v);
    f.exponentials += std::exp(v);
    ++f.count;
  }
  return all;
}

struct Expected {
  double value, bound;
};
Expected expected(std::string_view kind, const Folded &f) {
  double terms = 260 * kEps;
  if (kind == "sum")
    return {f.sum, terms * f.magnitude};
  if (kind == "mean")
    return {f.sum / double(f.count), terms * f.magnitude / double(f.count)};
  if (kind == "max")
    return {f.top, 0};
  if (kind == "min")
    return {f.bottom, 0};
  if (kind == "prod")
    return {f.product, double(f.count) * 2 * kEps * std::fabs(f.product) + 1e-40};
  if (kind == "l1")
    return {f.magnitude, terms * f.magnitude};
  if (kind == "l2")
    return {std::sqrt(f.squares), terms * std::sqrt(f.squares)};
  if (kind == "sum_square")
    return {f.squares, terms * f.squares};
  if (kind == "log_sum") // the relative error of the sum, absolute in its logarithm
    return {std::log(f.sum), terms * f.magnitude / f.sum + kEps * std::fabs(std::log(f.sum))};
  // exp is good to 4 ulp
  return {std::log(f.exponentials), terms + 8 * kEps + kEps * std::fabs(std::log(f.exponentials))};
}

TEST(Reduce, EveryKindRowAndShape) {
  struct Case {
    std::vector<int64_t> dims, axes;
  };
  std::mt19937 rng(2);
  for (const Case &c : {Case{{7, 13}, {1}},
                        {{7, 13}, {0}},
                        {{2, 3, 37, 5}, {1, 2}},
                        {{4, 5, 6, 7}, {0, 2}},
                        {{4, 5, 6, 7}, {1, 3}},
                        {{100003}, {0}},
                        {{3, 9001}, {1}},
                        {{9001, 3}, {0}},
                        {{150, 700}, {0}},
                        {{1, 64, 33, 33}, {2, 3}},
                        {{5}, {}},
                        {{2, 1, 3}, {1}},
                        {{37, 2}, {1}}, // short rows, in lanes
                        {{19, 3}, {1}},
                        {{70, 16}, {1}},
                        {{5, 64}, {1}},
                        {{6, 65}, {1}},
                        {{5, 7, 3}, {1}}, // short columns
                        {{4, 6, 131}, {1}},
                        {{1, 1}, {0, 1}}})
    for (const char *kind :
         {"sum", "mean", "max", "min", "prod", "l1", "l2", "log_sum", "log_sum_exp", "sum_square"}) {
      Tensor x = uniform(c.dims, rng);
      std::string_view name = kind;
      if (name == "log_sum") // of something positive
        for (int64_t k = 0; k < x.elements(); ++k)
          x.as<float>()[k] = std::fabs(x.as<float>()[k]) + 0.01f;
      if (name == "prod") // that does not vanish
        for (int64_t k = 0; k < x.elements(); ++k)
          x.as<float>()[k] = 1 + x.as<float>()[k] / 128;
      std::vector<bool> reduced(c.dims.size(), c.axes.empty());
      for (int64_t axis : c.axes)
        reduced[size_t(axis)] = true;
      std::vector<Folded> want = fold(x, reduced);
      for (const Kernel *row : rowsOf("reduce"))
        for (bool asOperand : {false, true}) {
          AttrList attrs;
          attrs.set("kind", kind).set("keepdims", int64_t(0));
          std::vector<Tensor> in = {x};
          if (asOperand)
            in.push_back(indices(c.axes));
          else
            attrs.set("axes", c.axes);
          Tensor y = runRow(*row, in, attrs)[0];
          ASSERT_EQ(size_t(y.elements()), want.size());
          for (size_t k = 0; k < want.size(); ++k) {
            Expected e = expected(kind, want[k]);
            // reduce_any holds f32 in f64: the bound covers it too.
            ASSERT_NEAR(double(y.as<float>()[k]), e.value, e.bound + kEps * std::fabs(e.value))
                << row->name << " " << kind << " " << testing::PrintToString(c.dims) << " element " << k;
          }
        }
    }
}

TEST(Reduce, DoesNotDependOnThreads) {
  std::mt19937 rng(4);
  for (std::vector<int64_t> axes : {std::vector<int64_t>{0}, {1}, {0, 1}}) {
    Tensor x = uniform({517, 611}, rng);
    AttrList attrs;
    attrs.set("kind", "sum").set("axes", axes);
    for (const Kernel *row : rowsOf("reduce")) {
      std::vector<Tensor> in = {x};
      Tensor one = runRow(*row, in, attrs, 1, 1)[0], three = runRow(*row, in, attrs, 1, 3)[0];
      EXPECT_EQ(one.bytes, three.bytes) << row->name;
    }
  }
}

// Rows that are folded side by side have the bits that each has alone.
TEST(Reduce, ShortRowsDoNotDependOnTheirNeighbours) {
  std::mt19937 rng(12);
  for (int64_t n : {2, 3, 4, 7, 21, 64}) {
    Tensor x = uniform({101, n}, rng);
    x.as<float>()[5 * n] = NAN;
    for (const char *kind : {"sum", "mean", "max", "l2"})
      for (const Kernel *row : rowsOf("reduce")) {
        AttrList attrs;
        attrs.set("kind", kind).set("axes", 1);
        std::vector<Tensor> all = {x};
        Tensor y = runRow(*row, all, attrs)[0];
        for (int64_t r : {0, 5, 6, 100}) {
          std::vector<Tensor> one = {zeros(DType::F32, {1, n})};
          std::copy_n(x.as<float>() + r * n, n, one[0].as<float>());
          Tensor alone = runRow(*row, one, attrs)[0];
          EXPECT_EQ(0, std::memcmp(alone.as<float>(), y.as<float>() + r, sizeof(float)))
              << row->name << " " << kind << " row " << r << " of " << n;
        }
      }
  }
}

TEST(Reduce, EmptySetsGiveIdentities) {
  Tensor x = zeros(DType::F32, {2, 0, 3});
  auto reduce = [&](const char *kind) {
    AttrList attrs;
    attrs.set("kind", kind).set("axes", 1);
    return runOp("reduce", {x}, attrs)[0].as<float>()[5];
  };
  EXPECT_EQ(reduce("sum"), 0);
  EXPECT_EQ(reduce("prod"), 1);
  EXPECT_EQ(reduce("max"), -INFINITY);
  EXPECT_EQ(reduce("min"), INFINITY);
  EXPECT_EQ(reduce("l1"), 0);
  EXPECT_EQ(reduce("l2"), 0);
  EXPECT_EQ(reduce("sum_square"), 0);
  EXPECT_EQ(reduce("log_sum"), -INFINITY);
  EXPECT_EQ(reduce("log_sum_exp"), -INFINITY);
  EXPECT_TRUE(std::isnan(reduce("mean")));
  auto integers = [&](DType type, const char *kind) {
    AttrList attrs;
    attrs.set("kind", kind).set("axes", int64_t(0)).set("keepdims", int64_t(0));
    return reduceAny({zeros(type, {0})}, attrs);
  };
  EXPECT_EQ(integers(DType::I32, "max").as<int32_t>()[0], INT32_MIN);
  EXPECT_EQ(integers(DType::I8, "min").as<int8_t>()[0], 127);
  EXPECT_EQ(integers(DType::U64, "min").as<uint64_t>()[0], UINT64_MAX);
  EXPECT_EQ(integers(DType::Bool, "min").as<uint8_t>()[0], 1);
}

TEST(Reduce, NanAndInfinity) {
  for (const Kernel *row : rowsOf("reduce"))
    for (int64_t place : {0, 5, 40, 99}) {
      Tensor x = zeros(DType::F32, {2, 100});
      x.as<float>()[place] = NAN;
      x.as<float>()[100 + place] = -INFINITY;
      std::vector<Tensor> in = {x};
      AttrList most, least, soft;
      most.set("kind", "max").set("axes", 1);
      least.set("kind", "min").set("axes", 1);
      soft.set("kind", "log_sum_exp").set("axes", 1);
      EXPECT_TRUE(std::isnan(runRow(*row, in, most)[0].as<float>()[0])) << row->name << " NaN wins";
      EXPECT_EQ(runRow(*row, in, most)[0].as<float>()[1], 0);
      EXPECT_EQ(runRow(*row, in, least)[0].as<float>()[1], -INFINITY);
      EXPECT_NEAR(runRow(*row, in, soft)[0].as<float>()[1], std::log(99.0), 1e-5);
    }
}

TEST(Reduce, IntegersAreExact) {
  std::mt19937 rng(6);
  Tensor x = filled<int32_t>(DType::I32, {3, 50, 4}, [&] { return int32_t(rng()); });
  AttrList attrs;
  attrs.set("kind", "sum").set("axes", 1).set("keepdims", int64_t(0));
  Tensor y = reduceAny({x}, attrs);
  for (int64_t o = 0; o < 3; ++o)
    for (int64_t i = 0; i < 4; ++i) {
      uint32_t sum = 0;
      for (int64_t r = 0; r < 50; ++r)
        sum += uint32_t(x.as<int32_t>()[(o * 50 + r) * 4 + i]);
      EXPECT_EQ(uint32_t(y.as<int32_t>()[o * 4 + i]), sum) << "sums wrap";
    }
}

TEST(Reduce, ContentsFold) {
  DimTable table;
  Dim n = table.symbol("n");
  AttrList product;
  product.set("kind", "prod").set("keepdims", int64_t(0));
  EXPECT_EQ(infer("reduce", {contents({n, 3, 4})}, product).ints(), "n*12");
  EXPECT_EQ(infer("reduce", {contents({2, 9, 4})}, AttrList().set("kind", "max")).ints(), "9");
}

TEST(ArgReduce, TiesNanAndInnerAxes) {
  std::mt19937 rng(8);
  for (const Kernel *row : rowsOf("arg_reduce"))
    for (int64_t last : {0, 1})
      for (bool isMax : {true, false})
        for (std::vector<int64_t> dims : {std::vector<int64_t>{5, 9000}, {4, 300, 3}}) {
          int64_t inner = dims.size() > 2 ? 3 : 1;
          bool rowsOnly = std::string_view(row->name) != "arg_reduce_any";
          if (rowsOnly && inner > 1)
            continue;
          Tensor x = filled<float>(DType::F32, dims, [&] { return float(rng() % 20); });
          x.as<float>()[7 * inner] = NAN;
          x.as<float>()[11 * inner] = NAN;
          AttrList attrs;
          attrs.set("axis", 1).set("kind", isMax ? "argmax" : "argmin").set("select_last_index", last);
          std::vector<Tensor> in = {x};
          Tensor y = runRow(*row, in, attrs)[0];
          for (int64_t line = 0; line < y.elements(); ++line) {
            const float *v = x.as<float>() + line / inner * dims[1] * inner + line % inner;
            int64_t best = 0;
            for (int64_t i = 1; i < dims[1]; ++i) {
              float a = v[i * inner], b = v[best * inner];
              bool equal = a == b || (a != a && b != b);
              bool better = a != a || (b == b && (isMax ? a > b : a < b));
              if (equal ? last : better && b == b)
                best = i;
            }
            ASSERT_EQ(y.as<int64_t>()[line], best) << row->name << " line " << line;
          }
        }
}

TEST(Cumulative, SumsAndProducts) {
  Tensor x = floats({1, 2, 3, 4, 5, 6}, {2, 3});
  auto run = [&](const char *kind, int64_t axis, int64_t exclusive, int64_t reverse) {
    AttrList attrs;
    attrs.set("kind", kind).set("exclusive", exclusive).set("reverse", reverse);
    Tensor y = runOp("cumulative", {x, index(axis)}, attrs)[0];
    return std::vector<float>(y.as<float>(), y.as<float>() + 6);
  };
  EXPECT_EQ(run("sum", 1, 0, 0), (std::vector<float>{1, 3, 6, 4, 9, 15}));
  EXPECT_EQ(run("sum", 0, 0, 0), (std::vector<float>{1, 2, 3, 5, 7, 9}));
  EXPECT_EQ(run("sum", -1, 1, 0), (std::vector<float>{0, 1, 3, 0, 4, 9}));
  EXPECT_EQ(run("sum", -1, 1, 1), (std::vector<float>{5, 3, 0, 11, 6, 0}));
  EXPECT_EQ(run("prod", 1, 0, 1), (std::vector<float>{6, 6, 3, 120, 30, 6}));
}

// Every type, by blocks of long rows and by lines beside each other: small whole numbers, so that there are
// ties in every block and no type rounds.
TEST(ArgReduce, EveryTypeAndAxis) {
  std::mt19937 rng(9);
  for (DType type :
       {DType::F32, DType::F16, DType::BF16, DType::F64, DType::I8, DType::U8, DType::I32, DType::I64})
    for (std::vector<int64_t> dims : {std::vector<int64_t>{3, 9001}, {5, 1}, {2, 70, 131}})
      for (bool isMax : {true, false})
        for (int64_t last : {0, 1}) {
          Tensor x = zeros(type, dims);
          std::vector<double> values(size_t(x.elements()));
          for (double &v : values)
            v = double(rng() % 100);
          storeFromF64(type, x.bytes.data(), 0, x.elements(), values.data());
          AttrList attrs;
          attrs.set("axis", 1).set("kind", isMax ? "argmax" : "argmin").set("select_last_index", last);
          int64_t inner = dims.size() > 2 ? dims[2] : 1, size = dims[1];
          for (const Kernel *row : rowsOf("arg_reduce")) {
            bool isRows = std::string_view(row->name) != "arg_reduce_any";
            bool isFloat = type == DType::F32 || type == DType::F16 || type == DType::BF16;
            if (isRows && (inner > 1 || !isFloat))
              continue;
            std::vector<Tensor> in = {x};
            Tensor y = runRow(*row, in, attrs)[0];
            for (int64_t line = 0; line < y.elements(); ++line) {
              const double *v = values.data() + line / inner * size * inner + line % inner;
              int64_t best = 0;
              for (int64_t i = 1; i < size; ++i) {
                double a = v[i * inner], b = v[best * inner];
                if ((isMax ? a > b : a < b) || (last && a == b))
                  best = i;
              }
              ASSERT_EQ(y.as<int64_t>()[line], best)
                  << row->name << " " << dtypeName(type) << " line " << line;
            }
          }
        }
}

// Lines that run side by side have the sums of their own chain, to the bit.
TEST(Cumulative, EveryAxisOfManyLines) {
  std::mt19937 rng(15);
  for (std::vector<int64_t> dims : {std::vector<int64_t>{21, 37}, {3, 19, 300}, {1, 5}})
    for (int64_t axis = 0; axis < int64_t(dims.size()); ++axis)
      for (int64_t form = 0; form < 4; ++form) {
        bool isExclusive = form % 2 != 0, isReverse = form / 2 != 0;
        Tensor x = uniform(dims, rng);
        AttrList attrs;
        attrs.set("kind", "sum").set("exclusive", int64_t(isExclusive)).set("reverse", int64_t(isReverse));
        Tensor y = runOp("cumulative", {x, index(axis)}, attrs)[0];
        int64_t size = dims[size_t(axis)], inner = 1;
        for (size_t i = size_t(axis) + 1; i < dims.size(); ++i)
          inner *= dims[i];
        for (int64_t line = 0; line < x.elements() / size; ++line) {
          float total = 0;
          for (int64_t i = 0; i < size; ++i) {
            int64_t place = isReverse ? size - 1 - i : i,
                    at = line / inner * size * inner + place * inner + line % inner;
            float before = total;
            total += x.as<float>()[at];
            ASSERT_EQ(y.as<float>()[at], isExclusive ? before : total) << "axis " << axis << " line " << line;
          }
        }
      }
}

} // namespace
} // namespace dspark
