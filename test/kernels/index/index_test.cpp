// Gathers, scatters and selections against loops over indices, with indices outside the tensor among them.
#include "kernels/common/element.h"
#include "test/kernels/shape_case.h"
#include <cmath>
#include <numeric>
#include <set>

namespace dspark {
namespace {

using namespace test;

Tensor iota(std::vector<int64_t> dims) {
  float next = 0;
  return filled<float>(DType::F32, std::move(dims), [&] { return ++next; });
}
template <typename T> std::vector<T> values(const Tensor &t) { return {t.as<T>(), t.as<T>() + t.elements()}; }

TEST(Gather, RowsAndDefinedRefusal) {
  Tensor x = iota({2, 5, 3}), at = tensorOf<int32_t>(DType::I32, {4, -5, 5, -6}, {2, 2});
  Tensor y = runOp("gather", {x, at}, AttrList().set("axis", 1))[0];
  ASSERT_EQ(y.dims, (std::vector<int64_t>{2, 2, 2, 3}));
  for (int64_t o = 0; o < 2; ++o)
    for (int64_t i = 0; i < 3; ++i) {
      EXPECT_EQ(y.as<float>()[o * 12 + i], x.as<float>()[o * 15 + 12 + i]);
      EXPECT_EQ(y.as<float>()[o * 12 + 3 + i], x.as<float>()[o * 15 + i]);
      EXPECT_EQ(y.as<float>()[o * 12 + 6 + i], 0) << "an index beyond the end reads zeros";
      EXPECT_EQ(y.as<float>()[o * 12 + 9 + i], 0) << "so does one before the beginning";
    }
}

TEST(Gather, LongRowsAreCut) {
  Tensor x = iota({3, 50000});
  Tensor y = runOp("gather", {x, index(2)})[0];
  ASSERT_EQ(y.dims, (std::vector<int64_t>{50000}));
  EXPECT_EQ(std::memcmp(y.bytes.data(), x.as<float>() + 100000, 200000), 0);
}

TEST(Gather, KnownIndicesAreChecked) {
  EXPECT_EQ(infer("gather", {f32({3, 4}), contents({3})}).str(), "error: index 3 is outside [-3, 3)");
  EXPECT_EQ(infer("gather", {contents({5, 6, 7}), scalarContents(-1)}).ints(), "7");
}

TEST(GatherElements, AnyAxis) {
  std::mt19937 rng(5);
  std::vector<int64_t> dims = {3, 4, 5}, small = {2, 3, 5};
  for (int64_t axis = 0; axis < 3; ++axis) {
    Tensor x = iota(dims);
    Tensor at = filled<int64_t>(DType::I64, small, [&] { return int64_t(rng() % 11) - 5; });
    Tensor wide = at; // too many elements to be contents, so that the kernel meets indices outside
    Tensor y = zeros(DType::F32, small);
    TensorView in[] = {x.view(), wide.view()}, out[] = {y.view()};
    AttrList attrs;
    attrs.set("axis", axis);
    KernelCall call{in, out, attrs.view(), nullptr, nullptr};
    KernelWork work;
    const Kernel *row = selectKernel("gather_elements", call, Isa::Baseline);
    row->prepare(call, work);
    row->run(call, work, {0, work.tiles[0], 0, 0, nullptr, nullptr});
    for (int64_t k = 0; k < y.elements(); ++k) {
      int64_t c[3] = {k / 15, k / 5 % 3, k % 5};
      c[axis] = at.as<int64_t>()[k];
      c[axis] += c[axis] < 0 ? dims[size_t(axis)] : 0;
      bool inside = c[axis] >= 0 && c[axis] < dims[size_t(axis)];
      EXPECT_EQ(y.as<float>()[k], inside ? x.as<float>()[(c[0] * 4 + c[1]) * 5 + c[2]] : 0);
    }
  }
}

TEST(GatherNd, BatchesAndSlices) {
  Tensor x = iota({2, 3, 4});
  Tensor at = tensorOf<int64_t>(DType::I64, {1, 2, 0, 3}, {2, 1, 2});
  Tensor y = runOp("gather_nd", {x, at}, AttrList().set("batch_dims", 1))[0];
  EXPECT_EQ(y.dims, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(values<float>(y), (std::vector<float>{1 * 4 + 2 + 1, 12 + 3 + 1}));
  y = runOp("gather_nd", {x, tensorOf<int64_t>(DType::I64, {1, -1}, {1, 2})})[0];
  EXPECT_EQ(values<float>(y), (std::vector<float>{21, 22, 23, 24}));
}

TEST(ScatterElements, DuplicatesApplyInOrder) {
  Tensor x = floats({1, 2, 3, 4}, {4}), at = indices({1, 1, -1}), u = floats({5, 6, 7}, {3});
  auto scatter = [&](const char *how) {
    return values<float>(runOp("scatter_elements", {x, at, u}, AttrList().set("reduction", how))[0]);
  };
  EXPECT_EQ(scatter("none"), (std::vector<float>{1, 6, 3, 7}));
  EXPECT_EQ(scatter("add"), (std::vector<float>{1, 13, 3, 11}));
  EXPECT_EQ(scatter("mul"), (std::vector<float>{1, 60, 3, 28}));
  EXPECT_EQ(scatter("max"), (std::vector<float>{1, 6, 3, 7}));
  EXPECT_EQ(scatter("min"), (std::vector<float>{1, 2, 3, 4}));
}

TEST(ScatterElements, InnerAxisInManyTiles) {
  Tensor x = zeros(DType::F32, {64, 700});
  Tensor at = filled<int64_t>(DType::I64, {64, 300}, [n = 0]() mutable { return n++ * 11 % 700; });
  Tensor u = iota({64, 300});
  Tensor y = runOp("scatter_elements", {x, at, u}, AttrList().set("axis", 1))[0];
  for (int64_t k = 0; k < 64 * 300; ++k)
    ASSERT_EQ(y.as<float>()[k / 300 * 700 + at.as<int64_t>()[k]], u.as<float>()[k]);
}

TEST(ScatterNd, SlicesAndReductions) {
  Tensor x = floats({1, 2, 3, 4, 5, 6}, {3, 2}), at = tensorOf<int64_t>(DType::I64, {2, 0}, {2, 1});
  Tensor u = floats({10, 20, 30, 40}, {2, 2});
  EXPECT_EQ(values<float>(runOp("scatter_nd", {x, at, u})[0]), (std::vector<float>{30, 40, 3, 4, 10, 20}));
  EXPECT_EQ(values<float>(runOp("scatter_nd", {x, at, u}, AttrList().set("reduction", "add"))[0]),
            (std::vector<float>{31, 42, 3, 4, 15, 26}));
}

TEST(TensorScatter, LinearAndCircular) {
  Tensor cache = zeros(DType::F32, {2, 3, 1}), u = floats({1, 2, 3, 4}, {2, 2, 1});
  Tensor at = indices({1, 2});
  EXPECT_EQ(values<float>(runOp("tensor_scatter", {cache, u, at})[0]),
            (std::vector<float>{0, 1, 2, 0, 0, 3}));
  EXPECT_EQ(values<float>(runOp("tensor_scatter", {cache, u, at}, AttrList().set("mode", "circular"))[0]),
            (std::vector<float>{0, 1, 2, 4, 0, 3}));
}

TEST(TopK, TiesAndNan) {
  float nan = NAN;
  Tensor x = floats({3, 1, 3, nan, 2, 3}, {6});
  std::vector<Tensor> best = runOp("top_k", {x, indices({4})}, {}, 2);
  EXPECT_TRUE(std::isnan(best[0].as<float>()[0]));
  EXPECT_EQ(values<int64_t>(best[1]), (std::vector<int64_t>{3, 0, 2, 5}));
  std::vector<Tensor> least = runOp("top_k", {x, indices({3})}, AttrList().set("largest", int64_t(0)), 2);
  EXPECT_EQ(values<int64_t>(least[1]), (std::vector<int64_t>{1, 4, 0}));
}

// Short lists and selection give the same answer, along inner axes too.
TEST(TopK, AgreesWithSorting) {
  std::mt19937 rng(3);
  for (int64_t k : {1, 5, 32, 33, 200}) {
    Tensor x = filled<int32_t>(DType::I32, {3, 200, 2}, [&] { return int32_t(rng() % 50); });
    std::vector<Tensor> best = runOp("top_k", {x, indices({k})}, AttrList().set("axis", 1), 2);
    for (int64_t o = 0; o < 3; ++o)
      for (int64_t i = 0; i < 2; ++i) {
        std::vector<std::pair<int32_t, int64_t>> line;
        for (int64_t j = 0; j < 200; ++j)
          line.push_back({-x.as<int32_t>()[(o * 200 + j) * 2 + i], j});
        std::sort(line.begin(), line.end());
        for (int64_t j = 0; j < k; ++j) {
          ASSERT_EQ(best[0].as<int32_t>()[(o * k + j) * 2 + i], -line[size_t(j)].first);
          ASSERT_EQ(best[1].as<int64_t>()[(o * k + j) * 2 + i], line[size_t(j)].second);
        }
      }
  }
}

// Long lines, in which most blocks are passed over and lists fill up: every element's order with NaN as the
// largest.
TEST(TopK, LongLines) {
  std::mt19937 rng(7);
  for (int64_t most : {50, 1 << 20}) { // many ties, or few
    Tensor x = filled<float>(DType::F32, {2, 5000}, [&] { return float(rng() % uint32_t(most)); });
    for (int64_t i : {100, 4000})
      x.as<float>()[i] = NAN;
    for (bool isLargest : {true, false})
      for (int64_t k : {1, 5, 32, 33, 700, 3000, 5000}) {
        AttrList attrs;
        attrs.set("largest", int64_t(isLargest));
        std::vector<Tensor> best = runOp("top_k", {x, indices({k})}, attrs, 2);
        for (int64_t line = 0; line < 2; ++line) {
          const float *v = x.as<float>() + line * 5000;
          std::vector<int64_t> order(5000);
          std::iota(order.begin(), order.end(), 0);
          auto key = [&](int64_t i) { return std::isnan(v[i]) ? INFINITY : v[i]; };
          std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
            return isLargest ? key(a) > key(b) : key(a) < key(b);
          });
          for (int64_t j = 0; j < k; ++j)
            ASSERT_EQ(best[1].as<int64_t>()[line * k + j], order[size_t(j)])
                << (isLargest ? "largest " : "smallest ") << j << " of " << k;
        }
      }
  }
}

// Rows of one element, of every size of element: places are counted from the end too, and those outside read
// 0.
TEST(Gather, Columns) {
  std::mt19937 rng(4);
  for (DType type : {DType::U8, DType::F16, DType::F32, DType::I64, DType::C128})
    for (int64_t count : {1, 7, 1300}) {
      int64_t rows = 9, dim = 31, bytes = dtypeBits(type) / 8;
      Tensor x = zeros(type, {rows, dim});
      for (std::byte &b : x.bytes)
        b = std::byte(rng());
      Tensor at = filled<int32_t>(DType::I32, {count}, [&] { return int32_t(rng() % 80) - 40; });
      Tensor y = runOp("gather", {x, at}, AttrList().set("axis", 1))[0];
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t j = 0; j < count; ++j) {
          int64_t place = at.as<int32_t>()[j] + (at.as<int32_t>()[j] < 0 ? dim : 0);
          bool isInside = place >= 0 && place < dim;
          for (int64_t b = 0; b < bytes; ++b)
            ASSERT_EQ(y.bytes[size_t((r * count + j) * bytes + b)],
                      isInside ? x.bytes[size_t((r * dim + place) * bytes + b)] : std::byte(0))
                << dtypeName(type) << " row " << r << " entry " << j;
        }
    }
}

TEST(NonZero, CountsOverTiles) {
  Tensor x = filled<uint8_t>(DType::Bool, {300, 401}, [n = 0]() mutable { return n++ % 3 == 1; });
  Tensor y = runOp("nonzero", {x})[0];
  ASSERT_EQ(y.dims, (std::vector<int64_t>{2, 40100}));
  for (int64_t k = 0; k < 40100; ++k)
    ASSERT_EQ(y.as<int64_t>()[k] * 401 + y.as<int64_t>()[40100 + k], 3 * k + 1);
}

TEST(NonZero, FoldsOnContents) {
  Inferred r = infer("nonzero", {contents({0, 4, 0, 9})});
  EXPECT_EQ(r.str(), "i64[1, 2]");
  EXPECT_EQ(r.ints(), "1, 3");
  EXPECT_FALSE(r.dimsFromKernel);
  EXPECT_TRUE(infer("nonzero", {f32({4, 5})}).dimsFromKernel);
}

TEST(Unique, SortedAndInOrderOfAppearance) {
  Tensor x = floats({2, 1, 1, 3, 4, 3}, {6});
  std::vector<Tensor> u = runOp("unique", {x}, {}, 4);
  EXPECT_EQ(values<int64_t>(u[1]).size(), 4u);
  EXPECT_EQ(u[0].dims, (std::vector<int64_t>{4}));
  EXPECT_EQ(values<float>(u[0]), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(values<int64_t>(u[1]), (std::vector<int64_t>{1, 0, 3, 4}));
  EXPECT_EQ(values<int64_t>(u[2]), (std::vector<int64_t>{1, 0, 0, 2, 3, 2}));
  EXPECT_EQ(values<int64_t>(u[3]), (std::vector<int64_t>{2, 1, 2, 1}));
  u = runOp("unique", {x}, AttrList().set("sorted", int64_t(0)), 4);
  EXPECT_EQ(values<float>(u[0]), (std::vector<float>{2, 1, 3, 4}));
  EXPECT_EQ(values<int64_t>(u[2]), (std::vector<int64_t>{0, 1, 1, 2, 3, 2}));
}

TEST(Compress, AlongAnAxisAndFlat) {
  Tensor x = iota({3, 2}), flags = tensorOf<uint8_t>(DType::Bool, {0, 1, 1}, {3});
  Tensor y = runOp("compress", {x, flags}, AttrList().set("axis", int64_t(0)))[0];
  EXPECT_EQ(y.dims, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ((std::vector<float>(y.as<float>(), y.as<float>() + 4)), (std::vector<float>{3, 4, 5, 6}));
  y = runOp("compress", {x, flags})[0];
  EXPECT_EQ(y.dims, (std::vector<int64_t>{2}));
  EXPECT_EQ((std::vector<float>(y.as<float>(), y.as<float>() + 2)), (std::vector<float>{2, 3}));
}

TEST(Fill, ConstantsOfEveryType) {
  for (DType type : {DType::F32, DType::F64, DType::F16, DType::I8, DType::I64, DType::Bool}) {
    Tensor y = runOp("constant_of_shape", {indices({3, 7})},
                     AttrList().set("dtype", int64_t(type)).set("value", int64_t(1)))[0];
    ASSERT_EQ(y.type, type);
    dispatchNumber(type, [&]<typename T>() {
      for (int64_t k = 0; k < 21; ++k)
        EXPECT_EQ(double(y.as<T>()[k]), 1);
    });
  }
  Tensor packed = runOp("constant_of_shape", {indices({5})},
                        AttrList().set("dtype", int64_t(DType::I4)).set("value", int64_t(-2)))[0];
  EXPECT_EQ(uint8_t(packed.bytes[0]), 0xee);
  EXPECT_EQ(infer("constant_of_shape", {contents({2})}, AttrList().set("value", int64_t(7))).ints(), "7, 7");
}

TEST(Fill, RangeEyeOneHot) {
  auto number = [](int64_t v) { return index(v); };
  EXPECT_EQ(values<int64_t>(runOp("range", {number(10), number(3), number(-3)})[0]),
            (std::vector<int64_t>{10, 7, 4}));
  DimTable table;
  EXPECT_EQ(infer("range", {scalarContents(0), scalarContents(table.symbol("seq")), scalarContents(1)}).str(),
            "i64[seq]");
  Tensor eye = runOp("eye_like", {zeros(DType::F32, {2, 3})}, AttrList().set("k", 1))[0];
  EXPECT_EQ(values<float>(eye), (std::vector<float>{0, 1, 0, 0, 0, 1}));
  Tensor hot = runOp("one_hot", {indices({1, -1, 7}), index(3), floats({0, 5}, {2})})[0];
  EXPECT_EQ(values<float>(hot), (std::vector<float>{0, 5, 0, 0, 0, 5, 0, 0, 0}));
}

} // namespace
} // namespace dspark
