// matmul with packed weights: every format, arithmetic, row and ISA level. Products are compared
// with f64 sums over the same weights and rows; the tolerance is derived at `expectClose`.
#include "kernels/common/numeric.h"
#include "kernels/matmul/scalar_activation.h"
#include "test/kernels/matmul/packed_case.h"

namespace dspark {
namespace {

using namespace test;

// What 8-bit rows stand for: codes times their step's scale.
std::vector<float> quantised(const Tensor &a) {
  int64_t k = a.dims[1];
  std::vector<float> rows(a.as<float>(), a.as<float>() + a.elements());
  for (int64_t row = 0; row < a.dims[0]; ++row)
    for (int64_t first = 0; first < k; first += kStepTerms) {
      float amax = 0x1p-100f, *x = rows.data() + row * k + first;
      int64_t count = std::min(kStepTerms, k - first);
      for (int64_t i = 0; i < count; ++i)
        amax = std::max(amax, std::fabs(x[i]));
      for (int64_t i = 0; i < count; ++i)
        x[i] = std::nearbyintf(x[i] * (127.0f / amax)) * (amax / 127.0f);
    }
  return rows;
}

// Every product is rounded at most 3 times and added up in at most k + 8 roundings; a weight itself is
// rounded once where it is a difference. `magnitude` sums what the differences are made of.
void expectClose(const RandomBlocks &blocks, const std::vector<float> &rows, const Tensor &y, int64_t k,
                 const std::string &what) {
  int64_t n = y.dims.back();
  for (int64_t column = 0; column < n; ++column) {
    std::vector<double> w, size;
    blocks.column(column, w, size);
    for (int64_t row = 0; row < y.elements() / n; ++row) {
      double sum = 0, magnitude = 0;
      for (int64_t t = 0; t < k; ++t) {
        double x = double(rows[size_t(row * k + t)]);
        sum += x * w[size_t(t)];
        magnitude += std::fabs(x) * size[size_t(t)];
      }
      ASSERT_NEAR(double(y.as<float>()[row * n + column]), sum, double(k + 12) * kEps * magnitude)
          << what << " row " << row << " column " << column;
    }
  }
}

TEST(Packed, Products) {
  std::mt19937 rng(1);
  for (const char *layout : kLayouts)
    for (auto [m, n, k] : {std::array<int64_t, 3>{1, 33, 512}, {3, 16, 256}, {11, 40, 768}, {2, 5, 80}}) {
      PackedFormat format = *PackedFormat::named(layout);
      RandomBlocks blocks(format, k, 7);
      for (bool isInt8 : {false, true}) {
        std::vector<Tensor> in = {uniform({m, k}, rng), packedTensor(DType::F32, layout, k, n, blocks)};
        std::vector<float> rows =
            isInt8 ? quantised(in[0]) : std::vector<float>(in[0].as<float>(), in[0].as<float>() + m * k);
        for (const Kernel *row : packedRows())
          expectClose(blocks, rows, runRow(*row, in, attributes(layout, isInt8))[0], k,
                      std::string(row->name) + " " + layout + (isInt8 ? " int8 " : " ") + std::to_string(k));
      }
    }
}

// The levels differ by fused multiply-adds only: each group's term and offset is rounded once more or less.
// Small, so that it also runs on an emulated CPU.
TEST(Packed, LevelsAgree) {
  std::mt19937 rng(4);
  std::vector<const Kernel *> rows = packedRows();
  for (const char *layout : kLayouts)
    for (int64_t m : {1, 3, 9}) {
      constexpr int64_t kN = 17, kK = 288;
      RandomBlocks blocks(*PackedFormat::named(layout), kK, 5);
      std::vector<Tensor> in = {uniform({m, kK}, rng), packedTensor(DType::F32, layout, kK, kN, blocks)};
      for (bool isInt8 : {false, true}) {
        Tensor want = runRow(*rows.back(), in, attributes(layout, isInt8))[0];
        double size = 0; // of the sums' terms, from above
        for (int64_t n = 0; n < kN; ++n) {
          std::vector<double> w, magnitudes;
          blocks.column(n, w, magnitudes);
          double sum = 0;
          for (double magnitude : magnitudes)
            sum += magnitude;
          size = std::max(size, sum);
        }
        for (const Kernel *row : rows) {
          Tensor y = runRow(*row, in, attributes(layout, isInt8))[0];
          for (int64_t i = 0; i < m * kN; ++i)
            ASSERT_NEAR(double(y.as<float>()[i]), double(want.as<float>()[i]), (kK / 4 + 8) * kEps * size)
                << row->name << " " << layout << (isInt8 ? " int8" : "");
        }
      }
    }
}

// Bit for bit: a row alone, among few, among many; whatever the tiles.
TEST(Packed, RowsDoNotDependOnTheirNumber) {
  std::mt19937 rng(2);
  constexpr int64_t kRows = 150, kTerms = 544, kColumns = 72;
  std::vector<const char *> layouts(std::begin(kLayouts), std::end(kLayouts));
  for (const char *layout : layouts) {
    RandomBlocks blocks(*PackedFormat::named(layout), kTerms, 3);
    std::vector<Tensor> in = {uniform({kRows, kTerms}, rng),
                              packedTensor(DType::F32, layout, kTerms, kColumns, blocks)};
    for (bool isInt8 : {false, true})
      for (const Kernel *row : packedRows()) {
        AttrList attrs = attributes(layout, isInt8);
        Tensor all = runRow(*row, in, attrs)[0];
        EXPECT_EQ(runRow(*row, in, attrs, 1, 1)[0].bytes, all.bytes) << row->name << " " << layout;
        for (auto [first, count] : {std::pair<int64_t, int64_t>{0, 1},
                                    {149, 1},
                                    {7, 2},
                                    {1, 3},
                                    {30, 4},
                                    {4, 5},
                                    {2, 7},
                                    {60, 9},
                                    {0, 17}}) {
          std::vector<Tensor> some = {zeros(DType::F32, {count, kTerms}), in[1]};
          std::memcpy(some[0].bytes.data(), in[0].as<float>() + first * kTerms, some[0].bytes.size());
          Tensor few = runRow(*row, some, attrs)[0];
          EXPECT_EQ(std::memcmp(few.bytes.data(), all.as<float>() + first * kColumns, few.bytes.size()), 0)
              << row->name << " " << layout << (isInt8 ? " int8" : "") << " rows " << count;
        }
      }
  }
}

// --- weights that are floats ---

TEST(Packed, FloatsAreExact) {
  std::mt19937 rng(5);
  for (DType type : {DType::F16, DType::BF16, DType::F32})
    for (bool isTransposed : {false, true})
      for (auto [m, n, k] : {std::array<int64_t, 3>{1, 37, 100}, {9, 16, 33}}) {
        const std::string layout(dtypeName(type));
        std::uniform_real_distribution<float> draw(-1, 1);
        Tensor w = type == DType::F32
                       ? filled<float>(type, {k, n}, [&] { return draw(rng); })
                       : filled<uint16_t>(type, {k, n}, [&] {
                           return type == DType::F16 ? f32ToF16(draw(rng)) : f32ToBf16(draw(rng));
                         });
        std::vector<double> wide(static_cast<size_t>(k * n));
        loadAsF64(type, w.bytes.data(), 0, k * n, wide.data());
        Tensor packed{DType::F32, isTransposed ? std::vector{n, k} : std::vector{k, n}, {}};
        packed.bytes.resize(size_t(*PackedFormat::named(layout)->bytes(k, n)));
        ASSERT_TRUE(packFloats(layout, k, n, isTransposed, w.bytes, packed.bytes).isOk());
        AttrList attrs;
        attrs.set("trans_b", isTransposed).set("packed", layout.c_str());
        std::vector<Tensor> in = {uniform({m, k}, rng), packed};
        for (const Kernel *row : packedRows()) {
          Tensor y = runRow(*row, in, attrs)[0];
          for (int64_t i = 0; i < m * n; ++i) {
            double sum = 0, magnitude = 0;
            for (int64_t t = 0; t < k; ++t) {
              double x = double(in[0].as<float>()[i / n * k + t]);
              double v = wide[size_t(isTransposed ? i % n * k + t : t * n + i % n)];
              sum += x * v;
              magnitude += std::fabs(x * v);
            }
            ASSERT_NEAR(double(y.as<float>()[i]), sum, double(k + 4) * kEps * magnitude) << row->name;
          }
        }
      }
}

// --- epilogues, types ---

TEST(Packed, BiasResidualActivationAndNarrowTypes) {
  std::mt19937 rng(6);
  constexpr int64_t kM = 5, kN = 37, kK = 96;
  RandomBlocks blocks(*PackedFormat::named("q4_0"), kK, 1);
  for (const Kernel *row : packedRows())
    for (bool isInt8 : {false, true}) {
      std::vector<Tensor> in = {uniform({kM, kK}, rng), packedTensor(DType::F32, "q4_0", kK, kN, blocks)};
      Tensor plain = runRow(*row, in, attributes("q4_0", isInt8))[0];
      in.push_back(uniform({kN}, rng));
      in.push_back(uniform({kM, kN}, rng));
      AttrList attrs = attributes("q4_0", isInt8);
      attrs.set("activation", "silu");
      Tensor y = runRow(*row, in, attrs)[0];
      auto want = [&](int64_t i) {
        double v =
            double(plain.as<float>()[i]) + double(in[2].as<float>()[i % kN]) + double(in[3].as<float>()[i]);
        return activateScalar<double>(Activation::Silu, v, 0, 0);
      };
      for (int64_t i = 0; i < kM * kN; ++i)
        ASSERT_NEAR(double(y.as<float>()[i]), want(i), 16 * kEps * (std::fabs(want(i)) + 2)) << row->name;
      // The same from f16 and bf16: rows are exact in them here, results are rounded once.
      for (DType type : {DType::F16, DType::BF16}) {
        std::vector<Tensor> narrow = in;
        for (size_t i : {0, 2, 3}) {
          narrow[i] = zeros(type, in[i].dims);
          for (int64_t e = 0; e < in[i].elements(); ++e) {
            float &x = in[i].as<float>()[e];
            uint16_t bits = type == DType::F16 ? f32ToF16(x) : f32ToBf16(x);
            narrow[i].as<uint16_t>()[e] = bits;
          }
        }
        narrow[1].type = type;
        std::vector<Tensor> wide = in;
        for (size_t i : {0, 2, 3})
          for (int64_t e = 0; e < in[i].elements(); ++e) {
            uint16_t bits = narrow[i].as<uint16_t>()[e];
            wide[i].as<float>()[e] = type == DType::F16 ? f16ToF32(bits) : bf16ToF32(bits);
          }
        Tensor exact = runRow(*row, wide, attrs)[0], rounded = runRow(*row, narrow, attrs)[0];
        for (int64_t i = 0; i < kM * kN; ++i) {
          float x = exact.as<float>()[i];
          ASSERT_EQ(rounded.as<uint16_t>()[i], type == DType::F16 ? f32ToF16(x) : f32ToBf16(x)) << row->name;
        }
      }
    }
}

TEST(Packed, GatedPairs) {
  std::mt19937 rng(8);
  constexpr int64_t kM = 11, kHalf = 21, kK = 256;
  RandomBlocks blocks(*PackedFormat::named("q4_k"), kK, 4);
  for (const Kernel *row : packedRows())
    for (bool isInt8 : {false, true}) {
      std::vector<Tensor> in = {uniform({kM, kK}, rng),
                                packedTensor(DType::F32, "q4_k", kK, 2 * kHalf, blocks)};
      Tensor both = runRow(*row, in, attributes("q4_k", isInt8))[0];
      in[1] = packedTensor(DType::F32, "q4_k", kK, 2 * kHalf, blocks, true);
      AttrList attrs = attributes("q4_k", isInt8);
      attrs.set("gated", 1).set("activation", "silu");
      Tensor y = runRow(*row, in, attrs)[0];
      ASSERT_EQ(y.dims, (std::vector<int64_t>{kM, kHalf}));
      for (int64_t i = 0; i < kM * kHalf; ++i) {
        const float *sums = both.as<float>() + i / kHalf * 2 * kHalf + i % kHalf;
        double want = activateScalar<double>(Activation::Silu, double(sums[0]), 0, 0) * double(sums[kHalf]);
        ASSERT_NEAR(double(y.as<float>()[i]), want, 16 * kEps * std::fabs(want) + 1e-38)
            << row->name; // below that exp has underflowed
      }
    }
}

TEST(Packed, QuantisedRowsAreWithinHalfAStep) {
  std::mt19937 rng(9);
  std::uniform_real_distribution<float> exponent(-90, 60);
  PackedFormat format = *PackedFormat::named("q4_0");
  constexpr int64_t kK = 77, kSteps = 3;
  for (Isa isa : {Isa::Baseline, Isa::Avx2, Isa::Avx512}) {
    if (isa > machineIsa())
      continue;
    for (int round = 0; round < 50; ++round) {
      float size = std::exp2f(exponent(rng));
      Tensor x = uniform({kK}, rng);
      for (int64_t i = 0; i < kK; ++i)
        x.as<float>()[i] *= i % 32 == 5 ? size : size * 0.01f;
      constexpr int64_t kRecord = kStepTerms + kRowNumberBytes;
      std::vector<uint8_t> records(kSteps * kRecord, 99);
      packedOps(isa).quantize(x.as<float>(), kK, format, {records.data(), kSteps, kStepTerms});
      for (int64_t s = 0; s < kSteps; ++s) {
        auto *codes = reinterpret_cast<const int8_t *>(records.data() + s * kRecord);
        float numbers[2]; // scale, sum
        std::memcpy(numbers, codes + kStepTerms, sizeof(numbers));
        int sum = 0;
        for (int64_t i = 0; i < kStepTerms; ++i) {
          double value = s * 32 + i < kK ? double(x.as<float>()[s * 32 + i]) : 0, scale = double(numbers[0]);
          ASSERT_LE(std::fabs(codes[i] * scale - value), scale * (0.5 + 128 * 4 * kEps)) << i;
          sum += codes[i];
        }
        if (isa == Isa::Avx512) // what integer sums start at
          EXPECT_EQ(std::bit_cast<int32_t>(numbers[1]), -format.zeroPoint * sum);
        else
          EXPECT_EQ(numbers[1], float(-sum));
      }
    }
  }
}

TEST(Packed, NotANumberStays) {
  RandomBlocks blocks(*PackedFormat::named("q4_0"), 64, 1);
  for (const Kernel *row : packedRows())
    for (bool isInt8 : {false, true}) {
      std::vector<Tensor> in = {zeros(DType::F32, {2, 64}), packedTensor(DType::F32, "q4_0", 64, 16, blocks)};
      in[0].as<float>()[40] = std::nanf("");
      Tensor y = runRow(*row, in, attributes("q4_0", isInt8))[0];
      for (int64_t i = 0; i < 16; ++i) {
        EXPECT_TRUE(std::isnan(y.as<float>()[i])) << row->name;
        EXPECT_EQ(y.as<float>()[16 + i], 0) << row->name;
      }
    }
}

TEST(Packed, EmptySizes) {
  RandomBlocks blocks(*PackedFormat::named("q4_0"), 0, 1);
  for (const Kernel *row : packedRows())
    for (bool isInt8 : {false, true})
      for (auto [m, n, k] : {std::array<int64_t, 3>{0, 5, 32}, {3, 0, 32}, {3, 5, 0}}) {
        std::vector<Tensor> in = {
            zeros(DType::F32, {m, k}),
            packedTensor(DType::F32, "q4_0", k, n, RandomBlocks(*PackedFormat::named("q4_0"), k, 1))};
        Tensor y = runRow(*row, in, attributes("q4_0", isInt8))[0];
        for (int64_t i = 0; i < m * n; ++i)
          EXPECT_EQ(y.as<float>()[i], 0);
      }
}

// --- shapes, names ---

TEST(Packed, NamesAndSizes) {
  EXPECT_EQ(PackedFormat::named("q4_0")->bytes(64, 17), 2 * 2 * (32 + 256));
  EXPECT_EQ(PackedFormat::named("q4_k")->bytes(256, 16), 64 + 8 * 32 + 8 * 256);
  EXPECT_EQ(PackedFormat::named("q6_k")->bytes(256, 16), 3360);
  EXPECT_EQ(PackedFormat::named("int4_g128_f16_zp")->bytes(129, 1), 2 * (48 + 4 * 256));
  EXPECT_EQ(PackedFormat::named("bf16")->bytes(33, 1), 2 * 1024);
  EXPECT_FALSE(PackedFormat::named("q4_0")->bytes(int64_t(1) << 39, int64_t(1) << 40));
  EXPECT_FALSE(PackedFormat::named("q4_0")->bytes(-1, 4));
  for (const char *bad :
       {"", "int7_g32_f16", "int4_g33_f16", "int4_g0_f16", "int4_g-32_f16", "int4_g32", "q4_0 ",
        "int4_g32_f16_zx", "int99999999999999999999_g32_f16", "int4_g99999999_f16"})
    EXPECT_FALSE(PackedFormat::named(bad)) << bad;
}

TEST(Packed, ShapesThatDoNotFit) {
  Tensor a = zeros(DType::F32, {2, 32}), b = zeros(DType::F32, {8, 32});
  EXPECT_EQ(refusal("matmul", {a, b}, attributes("q4_0", false)), "");
  EXPECT_NE(refusal("matmul", {a, zeros(DType::F32, {1, 8, 32})}, attributes("q4_0", false)), "");
  EXPECT_NE(
      refusal("matmul", {zeros(DType::F64, {2, 32}), zeros(DType::F64, {8, 32})}, attributes("q4_0", false)),
      "");
  AttrList transposed = attributes("q4_0", false), gated = attributes("q4_0", false), dense;
  transposed.set("trans_a", 1);
  EXPECT_NE(refusal("matmul", {zeros(DType::F32, {32, 2}), b}, transposed), "");
  EXPECT_NE(
      refusal("matmul", {a, b}, AttrList().set("packed", "q4_0").set("trans_b", 1).set("arithmetic", "int4")),
      "");
  gated.set("gated", 1);
  EXPECT_EQ(refusal("matmul", {a, b}, gated), "");
  EXPECT_NE(refusal("matmul", {a, zeros(DType::F32, {7, 32})}, gated), "");
  EXPECT_NE(refusal("matmul", {a, b, zeros(DType::F32, {8})}, gated), "");
  dense.set("gated", 1).set("trans_b", 1);
  EXPECT_NE(refusal("matmul", {a, b}, dense), "");
}

} // namespace
} // namespace dspark
