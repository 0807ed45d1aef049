// packed_rows: rows of a packed matrix, as the product sees them.
#include "kernels/common/numeric.h"
#include "test/kernels/matmul/packed_case.h"

namespace dspark {
namespace {

using namespace test;

std::vector<const Kernel *> rowKernels() { return rowsOf("packed_rows"); }

// Bit for bit what the product sees, for every layout, and so (GgufBlocksAreUnpackedExactly) what the source
// format defines. Every column of a panel and one beyond; K not a multiple of a step.
TEST(PackedRows, AreTheColumnsOfTheProduct) {
  for (const char *layout : kLayouts)
    for (int64_t k : {int64_t(288), int64_t(75), int64_t(1)}) {
      constexpr int64_t kN = 19;
      RandomBlocks blocks(*PackedFormat::named(layout), k, 6);
      Tensor weights = packedTensor(DType::F32, layout, k, kN, blocks);
      Tensor columns = unpacked(*packedRows().back(), weights, layout); // [K, N]
      Tensor order = filled<int32_t>(DType::I32, {2, kN}, [i = 0]() mutable { return i++ * 7 % int(kN); });
      std::vector<Tensor> in = {order, weights};
      for (const Kernel *row : rowKernels()) {
        Tensor y = runRow(*row, in, AttrList().set("packed", layout))[0];
        ASSERT_EQ(y.dims, (std::vector<int64_t>{2, kN, k}));
        for (int64_t t = 0; t < 2 * kN; ++t)
          for (int64_t i = 0; i < k; ++i)
            ASSERT_EQ(y.as<float>()[t * k + i], columns.as<float>()[i * kN + order.as<int32_t>()[t]])
                << row->name << " " << layout << " row " << order.as<int32_t>()[t] << " term " << i;
      }
    }
}

TEST(PackedRows, FloatsAndIndicesOutside) {
  constexpr int64_t kN = 18, kTerms = 45;
  std::mt19937 rng(3);
  std::uniform_real_distribution<float> draw(-1, 1);
  for (DType type : {DType::F16, DType::BF16, DType::F32}) {
    const std::string layout(dtypeName(type));
    Tensor w = type == DType::F32 ? filled<float>(type, {kN, kTerms}, [&] { return draw(rng); })
                                  : filled<uint16_t>(type, {kN, kTerms}, [&] {
                                      return type == DType::F16 ? f32ToF16(draw(rng)) : f32ToBf16(draw(rng));
                                    });
    std::vector<double> wide(static_cast<size_t>(kN * kTerms));
    loadAsF64(type, w.bytes.data(), 0, kN * kTerms, wide.data());
    Tensor weights{DType::F32, {kN, kTerms}, {}};
    weights.bytes.resize(size_t(*PackedFormat::named(layout)->bytes(kTerms, kN)));
    ASSERT_TRUE(packFloats(layout, kTerms, kN, true, w.bytes, weights.bytes).isOk());
    std::vector<Tensor> in = {indices({17, 0, -1, -18, 18, -19, INT64_MAX, INT64_MIN, 5}), weights};
    constexpr int64_t kFrom[] = {17, 0, 17, 0, -1, -1, -1, -1, 5};
    for (const Kernel *row : rowKernels()) {
      Tensor y = runRow(*row, in, AttrList().set("packed", layout.c_str()))[0];
      for (int64_t t = 0; t < int64_t(std::size(kFrom)); ++t)
        for (int64_t i = 0; i < kTerms; ++i) {
          double want = kFrom[t] < 0 ? 0 : wide[size_t(kFrom[t] * kTerms + i)];
          ASSERT_EQ(double(y.as<float>()[t * kTerms + i]), want) << row->name << " " << t;
        }
    }
  }
}

TEST(PackedRows, EmptySizes) {
  for (auto [t, n, k] : {std::array<int64_t, 3>{0, 5, 32}, {3, 0, 32}, {3, 5, 0}}) {
    RandomBlocks blocks(*PackedFormat::named("q4_0"), k, 1);
    std::vector<Tensor> in = {zeros(DType::I64, {t}), packedTensor(DType::F32, "q4_0", k, n, blocks)};
    for (const Kernel *row : rowKernels()) {
      Tensor y = runRow(*row, in, AttrList().set("packed", "q4_0"))[0];
      for (int64_t i = 0; n == 0 && i < t * k; ++i)
        EXPECT_EQ(y.as<float>()[i], 0);
    }
  }
}

TEST(PackedRows, ShapesThatDoNotFit) {
  Tensor tokens = zeros(DType::I64, {4}), w = zeros(DType::F32, {8, 32});
  AttrList q4;
  q4.set("packed", "q4_0");
  EXPECT_EQ(refusal("packed_rows", {tokens, w}, q4), "");
  EXPECT_NE(refusal("packed_rows", {tokens, w}, AttrList()), "");
  EXPECT_NE(refusal("packed_rows", {tokens, w}, AttrList().set("packed", "panel16")), "");
  EXPECT_NE(refusal("packed_rows", {zeros(DType::U8, {4}), w}, q4), "");
  EXPECT_NE(refusal("packed_rows", {tokens, zeros(DType::F64, {8, 32})}, q4), "");
  EXPECT_NE(refusal("packed_rows", {tokens, zeros(DType::F32, {8})}, q4), "");
  EXPECT_NE(refusal("packed_rows", {zeros(DType::I64, std::vector<int64_t>(kMaxRank, 1)), w}, q4), "");
}

} // namespace
} // namespace dspark
