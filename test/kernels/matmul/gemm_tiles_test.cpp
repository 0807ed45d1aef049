// f32 products by AMX tiles (kernels/matmul/gemm_tiles.h), beside f64 sums. What separates a result from the
// exact sum s of terms t, all relative to sum |t|: 2^-23 for the products of parts that are left out, and one
// eps = 2^-24 for each rounding, of which no more than 17 + 6 K/32 + 4 lie on the way of any product (16
// terms of a chain, the two chains' sum, a sum per product and step, the epilogue). Numbers below 2^-126
// count as zero.
#include "kernels/matmul/gemm.h"
#include "runtime/format/PackedLayout.h"
#include "test/kernels/kernel_case.h"
#include <cmath>
#include <limits>

namespace dspark {
namespace {

using namespace test;

constexpr double kEps = 1.0 / (1 << 24);

double roundings(int64_t k) { return 2 + 21 + 6.0 * double((k + 31) / 32); }

// One product of row-major operands, with B in panels; `taps` cuts the terms.
struct Product {
  int64_t m, n, k, taps = 1;
  Tensor a, b;
  std::vector<float> panels;

  Product(int64_t m, int64_t n, int64_t k, std::mt19937 &rng, int64_t taps = 1)
      : m(m), n(n), k(k), taps(taps), a(uniform({m, k}, rng)), b(uniform({k, n}, rng)) {}

  void pack() {
    int64_t count = (n + kPanel - 1) / kPanel;
    panels.resize(size_t(count * k * kPanel));
    for (int64_t p = 0; p < count; ++p)
      gemmOps(Isa::Baseline)
          .pack(b.as<float>() + p * kPanel, k, std::min(kPanel, n - p * kPanel), n, 1,
                panels.data() + p * k * kPanel);
  }
  /// Rows [first, first + rows) of panels from `panel` on.
  std::vector<float> run(int64_t first, int64_t rows, int64_t panel = 0, Isa isa = Isa::Amx) {
    pack();
    TileScope tiles(isa);
    int64_t columns = n - panel * kPanel, depth = k / taps;
    std::vector<float> y(size_t(rows * columns), -1.0f);
    std::vector<uint16_t> parts(kGemmPartElements, 0xffff);
    std::vector<const float *> addresses;
    std::vector<float *> c;
    for (int64_t t = 0; t < taps; ++t)
      for (int64_t r = 0; r < rows; ++r)
        addresses.push_back(a.as<float>() + (first + r) * k + t * depth);
    for (int64_t r = 0; r < rows; ++r)
      c.push_back(y.data() + r * columns);
    GemmTile tile = {};
    tile.a = addresses.data();
    tile.aStride = tile.rows = rows;
    tile.c = c.data();
    tile.taps = taps;
    tile.depth = depth;
    tile.b = panels.data() + panel * k * kPanel;
    tile.panelStride = k * kPanel;
    tile.columns = columns;
    tile.parts = parts.data();
    gemmOps(isa).tile(tile);
    return y;
  }
  double exact(int64_t row, int64_t column, double *magnitude) const {
    double sum = 0;
    *magnitude = 0;
    for (int64_t t = 0; t < k; ++t) {
      double term = double(a.as<float>()[row * k + t]) * double(b.as<float>()[t * n + column]);
      sum += term;
      *magnitude += std::fabs(term);
    }
    return sum;
  }
  void expectClose(const std::vector<float> &y, double absolute = 0) const {
    for (int64_t i = 0; i < m * n; ++i) {
      double magnitude, want = exact(i / n, i % n, &magnitude);
      ASSERT_NEAR(double(y[size_t(i)]), want, roundings(k) * kEps * magnitude + absolute)
          << m << "x" << n << "x" << k << " element " << i;
    }
  }
};

class GemmTiles : public testing::Test {
protected:
  void SetUp() override {
    if (!runsTiles())
      GTEST_SKIP() << "no AMX here (tiles_test has it in software)";
  }
  std::mt19937 rng{7};
};

TEST_F(GemmTiles, AwkwardSizes) {
  for (auto [m, n, k] : {std::array<int64_t, 3>{1, 1, 1},
                         {1, 16, 31},
                         {5, 17, 32},
                         {16, 40, 33},
                         {17, 15, 64},
                         {33, 48, 257},
                         {48, 33, 256},
                         {50, 20, 600},
                         {192, 16, 40}}) {
    Product product(m, n, k, rng);
    product.expectClose(product.run(0, m));
  }
}

TEST_F(GemmTiles, RowsAndColumnsDoNotDependOnTheirNumber) {
  Product product(70, 50, 300, rng);
  std::vector<float> all = product.run(0, 70);
  for (auto [first, rows] :
       {std::pair<int64_t, int64_t>{0, 1}, {69, 1}, {3, 2}, {10, 17}, {1, 33}, {20, 48}}) {
    std::vector<float> some = product.run(first, rows);
    EXPECT_EQ(std::memcmp(some.data(), all.data() + first * 50, some.size() * 4), 0) << first << " " << rows;
  }
  std::vector<float> last = product.run(0, 70, 2);
  for (int64_t row = 0; row < 70; ++row)
    EXPECT_EQ(std::memcmp(last.data() + row * 18, all.data() + row * 50 + 32, 18 * 4), 0) << row;
}

TEST_F(GemmTiles, TapsAreOneSum) {
  Product one(20, 33, 390, rng), three = one;
  three.taps = 3;
  EXPECT_EQ(one.run(0, 20), three.run(0, 20));
}

// Over wide exponents: the whole error against that of K multiply-adds, one after the other.
TEST_F(GemmTiles, ErrorIsNoLargerThanAPlainSums) {
  Product product(32, 48, 1024, rng);
  std::uniform_real_distribution<float> exponent(-3, 3);
  for (Tensor *t : {&product.a, &product.b})
    for (int64_t i = 0; i < t->elements(); ++i)
      t->as<float>()[i] *= std::exp(exponent(rng));
  std::vector<float> y = product.run(0, 32);
  double ours = 0, plain = 0;
  for (int64_t i = 0; i < 32 * 48; ++i) {
    double magnitude, want = product.exact(i / 48, i % 48, &magnitude);
    float sum = 0;
    for (int64_t t = 0; t < product.k; ++t)
      sum = std::fmaf(product.a.as<float>()[i / 48 * product.k + t], product.b.as<float>()[t * 48 + i % 48],
                      sum);
    ours += std::pow(double(y[size_t(i)]) - want, 2);
    plain += std::pow(double(sum) - want, 2);
  }
  EXPECT_LE(ours, plain);
}

TEST_F(GemmTiles, InfinitiesAndNaNAreThoseOfMultiplyAdds) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNaN = NAN;
  Product product(40, 50, 96, rng);
  float *a = product.a.as<float>(), *b = product.b.as<float>();
  a[3 * 96 + 5] = kInfinity;
  a[20 * 96 + 40] = -kInfinity;
  a[21 * 96] = kNaN;
  a[22 * 96 + 1] = __builtin_bit_cast(float, 0x7f800001); // a NaN whose payload no bf16 holds
  b[5 * 50 + 7] = 0;                                      // infinity times zero
  b[30 * 50 + 49] = kInfinity;
  b[31 * 50 + 17] = kNaN;
  std::vector<float> y = product.run(0, 40), plain = product.run(0, 40, 0, Isa::Baseline);
  for (int64_t i = 0; i < 40 * 50; ++i) {
    float ours = y[size_t(i)], want = plain[size_t(i)];
    EXPECT_EQ(std::isnan(ours), std::isnan(want)) << i;
    if (std::isinf(want) || std::isinf(ours))
      EXPECT_EQ(ours, want) << i;
  }
  // The row that held an infinity has the same bits alone.
  std::vector<float> alone = product.run(3, 1);
  EXPECT_EQ(std::memcmp(alone.data(), y.data() + 3 * 50, 50 * 4), 0);
}

TEST_F(GemmTiles, LargestAndSmallestNumbers) {
  Product large(4, 17, 33, rng);
  for (int64_t i = 0; i < large.a.elements(); ++i)
    large.a.as<float>()[i] = 0;
  for (int64_t row = 0; row < 4; ++row)
    large.a.as<float>()[row * 33 + row] = std::numeric_limits<float>::max(); // rounds to infinity in bf16
  large.expectClose(large.run(0, 4));
  // Every product loses at most what three parts below 2^-126 weigh.
  Product small(18, 20, 40, rng);
  for (int64_t i = 0; i < small.a.elements(); ++i)
    small.a.as<float>()[i] *= 0x1p-120f;
  small.expectClose(small.run(0, 18), 40 * 4 * 0x1p-126);
}

// --- rows of the catalogue ---

const Kernel *rowNamed(const char *op, std::string_view name) {
  for (const Kernel *row : rowsOf(op))
    if (row->name == name)
      return row;
  return nullptr;
}

struct Weight {
  Tensor plain, packed;
};
Weight matrix(int64_t k, int64_t n, std::mt19937 &rng) {
  Weight weight = {uniform({k, n}, rng), {}};
  weight.packed = weight.plain;
  MatrixWeight shape{1, k, n, false, 4};
  weight.packed.bytes.assign(*packedBytes("panel16", shape), std::byte(0xff));
  EXPECT_TRUE(packWeight("panel16", shape, weight.plain.bytes, weight.packed.bytes).isOk());
  return weight;
}

TEST_F(GemmTiles, MatmulOfLargeWeights) {
  const Kernel *row = rowNamed("matmul", "matmul_f32_amx");
  ASSERT_TRUE(row);
  constexpr int64_t kM = 19, kN = 1030, kK = 520;
  Weight weight = matrix(kK, kN, rng);
  std::vector<Tensor> in = {uniform({kM, kK}, rng), weight.packed, uniform({kN}, rng),
                            uniform({kM, kN}, rng)};
  AttrList attrs;
  attrs.set("packed", "panel16").set("activation", "relu");
  Tensor y = runRow(*row, in, attrs)[0];
  for (int64_t i = 0; i < kM * kN; ++i) {
    double sum = double(in[2].as<float>()[i % kN]) + double(in[3].as<float>()[i]), magnitude = std::fabs(sum);
    for (int64_t t = 0; t < kK; ++t) {
      double term =
          double(in[0].as<float>()[i / kN * kK + t]) * double(weight.plain.as<float>()[t * kN + i % kN]);
      sum += term;
      magnitude += std::fabs(term);
    }
    ASSERT_NEAR(double(y.as<float>()[i]), std::max(sum, 0.0), roundings(kK) * kEps * magnitude) << i;
  }
  std::vector<Tensor> one = {in[0], in[1], in[2], in[3]};
  for (size_t i : {0, 3}) {
    one[i].dims[0] = 1;
    one[i].bytes.resize(one[i].bytes.size() / kM);
  }
  Tensor first = runRow(*row, one, attrs, 1, 1)[0];
  EXPECT_EQ(std::memcmp(first.bytes.data(), y.bytes.data(), first.bytes.size()), 0);
}

TEST_F(GemmTiles, WhichMatmulsTakeThemIsTheWeightsAlone) {
  const Kernel *row = rowNamed("matmul", "matmul_f32_amx");
  ASSERT_TRUE(row);
  auto accepts = [&](int64_t m, int64_t n, int64_t k, const char *packed) {
    std::vector<int64_t> a = {m, k}, b = {k, n}, y = {m, n};
    TensorView in[] = {{nullptr, a.data(), 2, DType::F32}, {nullptr, b.data(), 2, DType::F32}};
    TensorView out[] = {{nullptr, y.data(), 2, DType::F32}};
    AttrList attrs;
    attrs.set("packed", packed);
    return row->accepts({in, out, attrs.view(), nullptr, nullptr});
  };
  for (int64_t m : {0, 1, 2, 63, 64, 5000}) {
    EXPECT_TRUE(accepts(m, 768, 768, "panel16"));
    EXPECT_FALSE(accepts(m, 768, 768, ""));
    EXPECT_FALSE(accepts(m, 384, 384, "panel16"));
    EXPECT_FALSE(accepts(m, 16, 1 << 20, "panel16"));
  }
}

TEST_F(GemmTiles, Convolutions) {
  const Kernel *row = rowNamed("conv", "conv_f32_amx");
  ASSERT_TRUE(row);
  struct Case {
    int64_t inputs, outputs, height, width, kernel, stride, group;
  };
  // Windows whose taps are joined (few channels), kept apart, in groups; single pixels.
  for (const Case &c : {Case{72, 40, 9, 11, 1, 1, 1},
                        {3, 33, 20, 22, 7, 2, 1},
                        {40, 48, 17, 19, 3, 2, 1},
                        {64, 64, 8, 9, 3, 1, 2}}) {
    int64_t perGroup = c.inputs / c.group, pad = c.kernel / 2;
    std::vector<Tensor> in = {uniform({2, c.height, c.width, c.inputs}, rng),
                              uniform({c.outputs, perGroup, c.kernel, c.kernel}, rng),
                              uniform({c.outputs}, rng)};
    AttrList attrs;
    attrs.set("layout", "nhwc").set("pads", {pad, pad, pad, pad}).set("strides", {c.stride, c.stride});
    attrs.set("group", c.group);
    Tensor y = runRow(*row, in, attrs)[0];
    ASSERT_EQ(y.dims.size(), 4u);
    int64_t height = y.dims[1], width = y.dims[2];
    for (int64_t i = 0; i < y.elements(); ++i) {
      int64_t o = i % c.outputs, w = i / c.outputs % width, h = i / c.outputs / width % height,
              n = i / c.outputs / width / height, group = o / (c.outputs / c.group);
      double sum = double(in[2].as<float>()[o]), magnitude = std::fabs(sum);
      for (int64_t at = 0; at < c.kernel * c.kernel * perGroup; ++at) {
        int64_t kh = at / (c.kernel * perGroup), kw = at / perGroup % c.kernel, channel = at % perGroup;
        int64_t ih = h * c.stride - pad + kh, iw = w * c.stride - pad + kw;
        if (ih < 0 || ih >= c.height || iw < 0 || iw >= c.width)
          continue;
        double x = double(
            in[0].as<float>()[((n * c.height + ih) * c.width + iw) * c.inputs + group * perGroup + channel]);
        double term =
            x * double(in[1].as<float>()[((o * perGroup + channel) * c.kernel + kh) * c.kernel + kw]);
        sum += term;
        magnitude += std::fabs(term);
      }
      ASSERT_NEAR(double(y.as<float>()[i]), sum, roundings(c.kernel * c.kernel * perGroup) * kEps * magnitude)
          << c.inputs << " " << c.kernel << " element " << i;
    }
    std::vector<Tensor> one = in;
    one[0].dims[0] = 1;
    one[0].bytes.resize(one[0].bytes.size() / 2);
    Tensor first = runRow(*row, one, attrs, 1, 1)[0];
    EXPECT_EQ(std::memcmp(first.bytes.data(), y.bytes.data(), first.bytes.size()), 0) << c.inputs;
  }
}

} // namespace
} // namespace dspark
