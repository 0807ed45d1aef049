// Weights in bf16 times rows in bf16 (`arithmetic` bf16, or rows of that type), at every level; with
// vdpbf16ps where the machine has it (kernels/matmul/packed_dots.h).
#include "kernels/common/bf16_speed.h"
#include "kernels/common/numeric.h"
#include "test/kernels/matmul/packed_case.h"

namespace dspark {
namespace {

using namespace test;

// Those of packedRows() and, where it pays here, that of vdpbf16ps.
std::vector<const Kernel *> rows() {
  std::vector<const Kernel *> rows = packedRows();
  for (const Kernel *row : rowsOf("matmul"))
    if (std::string_view(row->name).starts_with("matmul_packed_bf16") && multipliesBf16())
      rows.push_back(row);
  return rows;
}

struct Product {
  Tensor x, plain, packed;
  int64_t k, n;

  Product(int64_t m, int64_t k, int64_t n, std::mt19937 &rng, DType type = DType::F32) : k(k), n(n) {
    std::uniform_real_distribution<float> draw(-1, 1);
    x = type == DType::F32 ? uniform({m, k}, rng)
                           : filled<uint16_t>(type, {m, k}, [&] { return f32ToBf16(draw(rng)); });
    plain = filled<uint16_t>(DType::BF16, {k, n}, [&] { return f32ToBf16(draw(rng)); });
    packed = {type, {k, n}, {}};
    packed.bytes.resize(size_t(*PackedFormat::named("bf16")->bytes(k, n)));
    EXPECT_TRUE(packFloats("bf16", k, n, false, plain.bytes, packed.bytes).isOk());
  }
  float rounded(int64_t i) const {
    return bf16ToF32(x.type == DType::F32 ? f32ToBf16(x.as<float>()[i]) : x.as<uint16_t>()[i]);
  }
  float weight(int64_t t, int64_t column) const { return bf16ToF32(plain.as<uint16_t>()[t * n + column]); }
  // The sum of what is multiplied, and of its magnitudes.
  std::pair<double, double> sum(int64_t row, int64_t column) const {
    double sum = 0, magnitude = 0;
    for (int64_t t = 0; t < k; ++t) {
      double term = double(rounded(row * k + t)) * double(weight(t, column));
      sum += term;
      magnitude += std::fabs(term);
    }
    return {sum, magnitude};
  }
};

AttrList attributesOf(const char *activation = "") {
  AttrList attrs;
  attrs.set("packed", "bf16").set("arithmetic", "bf16").set("activation", activation);
  return attrs;
}

// Products of bf16 are exact; k of them are added up in at most k + 4 roundings.
TEST(PackedDots, Products) {
  std::mt19937 rng(1);
  for (auto [m, k, n] : {std::array<int64_t, 3>{1, 77, 16},
                         {2, 1, 5},
                         {3, 64, 40},
                         {11, 130, 33},
                         {12, 33, 48},
                         {13, 96, 17},
                         {25, 200, 64},
                         {131, 70, 20}}) {
    Product product(m, k, n, rng);
    std::vector<Tensor> in = {product.x, product.packed, uniform({n}, rng), uniform({m, n}, rng)};
    for (const Kernel *row : rows()) {
      Tensor y = runRow(*row, in, attributesOf("relu"))[0];
      for (int64_t i = 0; i < m * n; ++i) {
        auto [sum, magnitude] = product.sum(i / n, i % n);
        double bias = double(in[2].as<float>()[i % n]), residual = double(in[3].as<float>()[i]);
        magnitude += std::fabs(bias) + std::fabs(residual);
        ASSERT_NEAR(double(y.as<float>()[i]), std::max(sum + bias + residual, 0.0),
                    double(k + 6) * kEps * magnitude)
            << row->name << " " << m << "x" << k << "x" << n << " at " << i;
      }
    }
  }
}

TEST(PackedDots, RowsOfThatTypeNeedNoRounding) {
  std::mt19937 rng(2);
  Product product(14, 90, 36, rng, DType::BF16);
  std::vector<Tensor> in = {product.x, product.packed};
  for (const Kernel *row : rows()) {
    Tensor y = runRow(*row, in, attributesOf())[0];
    for (int64_t i = 0; i < 14 * 36; ++i) {
      auto [sum, magnitude] = product.sum(i / 36, i % 36);
      // The result is rounded to bf16.
      ASSERT_NEAR(double(bf16ToF32(y.as<uint16_t>()[i])), sum, std::fabs(sum) / 256 + 100 * kEps * magnitude)
          << row->name << " at " << i;
    }
  }
}

TEST(PackedDots, RowsDoNotDependOnTheirNumber) {
  std::mt19937 rng(3);
  constexpr int64_t kRows = 150, kTerms = 300, kColumns = 72;
  Product product(kRows, kTerms, kColumns, rng);
  std::vector<Tensor> in = {product.x, product.packed};
  for (const Kernel *row : rows()) {
    Tensor all = runRow(*row, in, attributesOf())[0];
    for (auto [first, count] :
         {std::pair<int64_t, int64_t>{0, 1}, {149, 1}, {7, 2}, {30, 12}, {2, 13}, {1, 130}}) {
      std::vector<Tensor> some = {zeros(DType::F32, {count, kTerms}), product.packed};
      std::memcpy(some[0].bytes.data(), product.x.as<float>() + first * kTerms, some[0].bytes.size());
      Tensor few = runRow(*row, some, attributesOf(), 1, 1)[0];
      EXPECT_EQ(std::memcmp(few.bytes.data(), all.as<float>() + first * kColumns, few.bytes.size()), 0)
          << row->name << " rows " << first << " + " << count;
    }
  }
}

TEST(PackedDots, InfinitiesAndNaNOfARowStayInIt) {
  std::mt19937 rng(4);
  constexpr int64_t kRows = 18, kTerms = 71, kColumns = 20;
  Product product(kRows, kTerms, kColumns, rng);
  std::vector<Tensor> in = {product.x, product.packed};
  float *x = in[0].as<float>();
  x[1 * kTerms + 5] = INFINITY;
  x[3 * kTerms + 70] = __builtin_bit_cast(float, 0x7f800001); // a NaN whose payload no bf16 holds
  for (const Kernel *row : rows()) {
    Tensor y = runRow(*row, in, attributesOf())[0];
    for (int64_t i = 0; i < kRows * kColumns; ++i) {
      float value = y.as<float>()[i];
      if (i / kColumns == 1)
        EXPECT_EQ(value, std::copysign(INFINITY, product.weight(5, i % kColumns))) << row->name << " " << i;
      else
        EXPECT_EQ(std::isnan(value), i / kColumns == 3) << row->name << " " << i;
    }
  }
}

TEST(PackedDots, OnlyForWeightsInBf16) {
  Tensor x = zeros(DType::F32, {2, 64}), w{DType::F32, {64, 16}, {}};
  AttrList attrs;
  attrs.set("packed", "q4_0").set("arithmetic", "bf16");
  EXPECT_EQ(refusal("matmul", {x, w}, attrs), "arithmetic bf16: expected weights packed as bf16, found q4_0");
}

} // namespace
} // namespace dspark
