// multi_matmul gives what its products give alone, bit for bit: cutting its weights as one changes nothing.
#include "test/kernels/matmul/packed_case.h"

namespace dspark {
namespace {

using namespace test;

constexpr int64_t kTerms = 288;
constexpr int64_t kColumns[] = {600, 24, 16}; // panels that are not full; slabs that span products

// That computes what `single` computes of each product.
const Kernel *multiRow(const Kernel &single) {
  for (const Kernel *row : rowsOf("multi_matmul"))
    if (row->name == "multi_" + std::string(single.name))
      return row;
  return nullptr;
}

void check(DType type, const char *layout, bool isInt8, int64_t rows) {
  std::mt19937 rng(uint32_t(rows) + isInt8);
  Tensor a = type == DType::F32 ? uniform({rows, kTerms}, rng) : filled<uint16_t>(type, {rows, kTerms}, [&] {
    return f32ToBf16(float(rng() % 256) / 128 - 1);
  });
  std::vector<Tensor> all = {a};
  for (int64_t n : kColumns) {
    all.push_back(packedTensor(type, layout, kTerms, n,
                               RandomBlocks(*PackedFormat::named(layout), kTerms, uint32_t(n))));
    bool hasBias = n != 24;
    all.push_back(!hasBias             ? Tensor{}
                  : type == DType::F32 ? uniform({n}, rng)
                                       : filled<uint16_t>(type, {n}, [&] { return f32ToBf16(1.5f); }));
  }
  AttrList attrs = attributes(layout, isInt8);
  attrs.set("activation", "silu");
  for (const Kernel *row : packedRows()) {
    const Kernel *multi = multiRow(*row);
    ASSERT_TRUE(multi) << row->name;
    for (int threads : {1, 3}) {
      std::vector<Tensor> y = runRow(*multi, all, attrs, std::size(kColumns), threads);
      ASSERT_EQ(y.size(), std::size(kColumns));
      for (size_t i = 0; i < y.size(); ++i) {
        std::vector<Tensor> one = {all[0], all[1 + 2 * i], all[2 + 2 * i]};
        EXPECT_EQ(y[i].bytes, runRow(*row, one, attrs)[0].bytes)
            << multi->name << " " << layout << (isInt8 ? " int8" : "") << ", rows " << rows << ", result "
            << i;
      }
    }
  }
}

TEST(MultiMatmul, IsItsProductsAlone) {
  for (const char *layout : {"q4_1", "q8_0", "q6_k"})
    for (bool isInt8 : {false, true})
      for (int64_t rows : {0, 1, 5, 130})
        check(DType::F32, layout, isInt8, rows);
  check(DType::BF16, "q4_0", true, 3);
}

TEST(MultiMatmul, ShapesThatDoNotFit) {
  Tensor a = zeros(DType::F32, {2, 32}), b = zeros(DType::F32, {8, 32}), none;
  AttrList attrs = attributes("q4_0", false);
  EXPECT_EQ(refusal("multi_matmul", {a, b, none, b, none}, attrs, 2), "");
  EXPECT_NE(refusal("multi_matmul", {a, b, none}, attrs, 1), "");
  EXPECT_NE(refusal("multi_matmul", {a, b, none, b}, attrs, 2), "");
  EXPECT_NE(refusal("multi_matmul", {a, b, none, b, none}, attrs, 3), "");
  EXPECT_NE(refusal("multi_matmul", {a, b, none, zeros(DType::F32, {8, 64}), none}, attrs, 2), "");
  EXPECT_NE(refusal("multi_matmul", {a, b, none, b, zeros(DType::F32, {7})}, attrs, 2), "");
  EXPECT_NE(refusal("multi_matmul", {a, b, none, b, none}, AttrList().set("packed", "panel16"), 2), "");
  EXPECT_NE(refusal("multi_matmul", {a, b, none, b, none}, attributes("q4_0", false).set("gated", 1), 2), "");
}

} // namespace
} // namespace dspark
