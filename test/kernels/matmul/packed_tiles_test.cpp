// Weights in bf16 by AMX tiles (kernels/matmul/packed_tiles.h): packed_test.cpp compares their products with
// f64 sums; here, that rows do not depend on their number and what becomes of special numbers.
#include "kernels/common/numeric.h"
#include "test/kernels/matmul/packed_case.h"

namespace dspark {
namespace {

using namespace test;

const Kernel *tileRow() {
  if (runsTiles())
    for (const Kernel *row : packedRows())
      if (row->isa == Isa::Amx)
        return row;
  return nullptr;
}

struct Halves {
  Tensor plain, packed;
};
Halves weights(int64_t k, int64_t n, std::mt19937 &rng) {
  std::uniform_real_distribution<float> draw(-1, 1);
  Halves made = {filled<uint16_t>(DType::BF16, {k, n}, [&] { return f32ToBf16(draw(rng)); }),
                 {DType::F32, {k, n}, {}}};
  made.packed.bytes.resize(size_t(*PackedFormat::named("bf16")->bytes(k, n)));
  EXPECT_TRUE(packFloats("bf16", k, n, false, made.plain.bytes, made.packed.bytes).isOk());
  return made;
}

AttrList attributesOf() {
  AttrList attrs;
  attrs.set("packed", "bf16");
  return attrs;
}

TEST(PackedTiles, RowsDoNotDependOnTheirNumber) {
  const Kernel *row = tileRow();
  if (!row)
    GTEST_SKIP() << "no AMX here (tiles_test has it in software)";
  std::mt19937 rng(3);
  constexpr int64_t kRows = 150, kTerms = 300, kColumns = 40;
  Halves w = weights(kTerms, kColumns, rng);
  for (DType type : {DType::F32, DType::BF16}) {
    Tensor x = uniform({kRows, kTerms}, rng);
    if (type == DType::BF16)
      x = filled<uint16_t>(type, {kRows, kTerms}, [&] { return f32ToBf16(float(rng() % 999) - 499.f); });
    w.packed.type = type;
    std::vector<Tensor> in = {x, w.packed};
    Tensor all = runRow(*row, in, attributesOf())[0];
    for (auto [first, count] :
         {std::pair<int64_t, int64_t>{0, 1}, {149, 1}, {7, 2}, {30, 16}, {2, 17}, {1, 130}}) {
      size_t rowBytes = x.bytes.size() / kRows, resultBytes = all.bytes.size() / kRows;
      std::vector<Tensor> some = {zeros(type, {count, kTerms}), w.packed};
      std::memcpy(some[0].bytes.data(), x.bytes.data() + size_t(first) * rowBytes, some[0].bytes.size());
      Tensor few = runRow(*row, some, attributesOf(), 1, 1)[0];
      EXPECT_EQ(
          std::memcmp(few.bytes.data(), all.bytes.data() + size_t(first) * resultBytes, few.bytes.size()), 0)
          << dtypeName(type) << " rows " << first << " + " << count;
    }
  }
}

TEST(PackedTiles, InfinitiesAndNaNOfARowStayInIt) {
  const Kernel *row = tileRow();
  if (!row)
    GTEST_SKIP() << "no AMX here (tiles_test has it in software)";
  std::mt19937 rng(4);
  constexpr int64_t kTerms = 70, kColumns = 20;
  Halves w = weights(kTerms, kColumns, rng);
  w.packed.type = DType::F32;
  std::vector<Tensor> in = {uniform({18, kTerms}, rng), w.packed};
  float *x = in[0].as<float>();
  x[1 * kTerms + 5] = INFINITY;
  x[3 * kTerms + 69] = __builtin_bit_cast(float, 0x7f800001); // a NaN whose payload no bf16 holds
  x[17 * kTerms] = std::numeric_limits<float>::max();         // would round to infinity
  Tensor y = runRow(*row, in, attributesOf())[0];
  for (int64_t i = 0; i < 18 * kColumns; ++i) {
    float value = y.as<float>()[i], weight = bf16ToF32(w.plain.as<uint16_t>()[5 * kColumns + i % kColumns]);
    if (i / kColumns == 1)
      EXPECT_EQ(value, std::copysign(INFINITY, weight)) << i;
    else
      EXPECT_EQ(std::isnan(value), i / kColumns == 3) << i;
  }
}

} // namespace
} // namespace dspark
