#include "kernels/common/kernel.h"
#include "runtime/format/QuantizedWeight.h"
#include <cmath>
#include <gtest/gtest.h>
#include <random>

namespace dspark {
namespace {

constexpr int64_t kTerms = 70, kColumns = 37; // neither a multiple of a step nor of a panel

std::vector<float> randomWeights() {
  std::mt19937 rng(7);
  std::normal_distribution<float> draw;
  std::vector<float> w(size_t(kTerms * kColumns));
  for (float &value : w)
    value = draw(rng);
  return w;
}

// The weights as the kernel reads them: rows of the unit matrix times B, in f32 arithmetic.
std::vector<float> readBack(const char *layout, const std::vector<std::byte> &packed) {
  std::vector<float> unit(size_t(kTerms * kTerms)), y(size_t(kTerms * kColumns));
  for (int64_t i = 0; i < kTerms; ++i)
    unit[size_t(i * kTerms + i)] = 1;
  int64_t aDims[] = {kTerms, kTerms}, bDims[] = {kTerms, kColumns}, yDims[] = {kTerms, kColumns};
  TensorView in[] = {{unit.data(), aDims, 2, DType::F32},
                     {const_cast<std::byte *>(packed.data()), bDims, 2, DType::F32}};
  TensorView out{y.data(), yDims, 2, DType::F32};
  Attr attrs[] = {{"packed", {}, {}, layout}};
  KernelCall call;
  call.in = in;
  call.out = {&out, 1};
  call.attrs = Attrs(attrs);
  const Kernel *row = selectKernel("matmul", call, activeIsa());
  KernelWork work;
  row->prepare(call, work);
  std::vector<std::byte> scratch(work.scratchPerThread + 64), shared(work.scratchShared + 64);
  for (int phase = 0; phase < work.phases; ++phase)
    row->run(call, work, {0, work.tiles[phase], phase, 0, scratch.data(), shared.data()});
  return y;
}

std::vector<std::byte> pack(const char *layout, const std::vector<float> &w, bool isTransposed) {
  std::vector<std::byte> packed(*quantizedBytes(layout, kTerms, kColumns));
  Status status = packQuantized(layout, kTerms, kColumns, isTransposed, w, packed);
  EXPECT_TRUE(status.isOk()) << status.message();
  return packed;
}

struct Case {
  const char *layout;
  int64_t group; // terms per scale
  int levels;    // largest code
};

class QuantizedWeight : public testing::TestWithParam<Case> {};

// To nearest: off by at most half a step, which is the group's largest weight over the largest code; a
// clipped 4-bit group by at most a quarter of its largest weight.
TEST_P(QuantizedWeight, IsNearest) {
  auto [layout, group, levels] = GetParam();
  std::vector<float> w = randomWeights(), found = readBack(layout, pack(layout, w, false));
  for (int64_t column = 0; column < kColumns; ++column)
    for (int64_t first = 0; first < kTerms; first += group) {
      float most = 0;
      for (int64_t k = first; k < std::min(first + group, kTerms); ++k)
        most = std::max(most, std::fabs(w[size_t(k * kColumns + column)]));
      float bound = most / float(levels) / 2 * 1.0001f;
      if (levels < 127)
        bound = std::max(bound, most * 0.2501f);
      for (int64_t k = first; k < std::min(first + group, kTerms); ++k)
        EXPECT_NEAR(found[size_t(k * kColumns + column)], w[size_t(k * kColumns + column)], bound)
            << layout << " term " << k << " column " << column;
    }
}

TEST_P(QuantizedWeight, TransposedIsTheSame) {
  const char *layout = GetParam().layout;
  std::vector<float> w = randomWeights(), turned(w.size());
  for (int64_t k = 0; k < kTerms; ++k)
    for (int64_t n = 0; n < kColumns; ++n)
      turned[size_t(n * kTerms + k)] = w[size_t(k * kColumns + n)];
  EXPECT_EQ(pack(layout, w, false), pack(layout, turned, true));
}

INSTANTIATE_TEST_SUITE_P(Layouts, QuantizedWeight,
                         testing::Values(Case{"int8_grow_f32", kTerms, 127}, Case{"int8_g32_f32", 32, 127},
                                         Case{"int4_g32_f32", 32, 7}),
                         [](auto &info) { return info.param.layout; });

TEST(QuantizedWeights, HalvesAreRounded) {
  std::vector<float> w = randomWeights(), found = readBack("bf16", pack("bf16", w, false));
  for (size_t i = 0; i < w.size(); ++i)
    EXPECT_NEAR(found[i], w[i], std::fabs(w[i]) / 256); // 8 bits of mantissa, to nearest: 2^-9 of it, doubled
}

TEST(QuantizedWeights, WrongCallsEndInASentence) {
  EXPECT_FALSE(quantizedBytes("q4_k", 32, 16).isOk());
  EXPECT_FALSE(quantizedBytes("panel16", 32, 16).isOk());
  EXPECT_FALSE(quantizedBytes("int8_grow_f32", -1, 16).isOk());
  std::vector<float> w(32 * 16);
  std::vector<std::byte> small(10);
  EXPECT_FALSE(packQuantized("int8_grow_f32", 32, 16, false, w, small).isOk());
  // Zeros and NaN leave no scale to divide by.
  w[3] = NAN;
  std::vector<std::byte> packed(*quantizedBytes("int8_grow_f32", 32, 16));
  EXPECT_TRUE(packQuantized("int8_grow_f32", 32, 16, false, w, packed).isOk());
}

} // namespace
} // namespace dspark
