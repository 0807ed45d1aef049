// packed_experts: every pair's result is, bit for bit, that of the packed product of its row with its expert
// alone.
#include "kernels/common/numeric.h"
#include "runtime/format/PackedBits.h"
#include "test/kernels/matmul/packed_case.h"

namespace dspark {
namespace {

using namespace test;

constexpr int64_t kExperts = 5, kTerms = 96;

// Experts' weights of rows of `n`, packed one after another, and each alone.
struct Experts {
  Tensor all;
  std::vector<Tensor> one;
};

std::vector<std::byte> rowsOfBlocks(std::mt19937 &rng, int64_t n) { // q4_0: an f16 scale and 16 bytes
  std::vector<std::byte> bytes(size_t(n * kTerms / 32 * 18));
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = std::byte(rng());
  for (size_t i = 0; i < bytes.size(); i += 18) {
    uint16_t scale = f32ToF16(0.01f + 0.001f * float(rng() % 16));
    std::memcpy(bytes.data() + i, &scale, sizeof scale);
  }
  return bytes;
}

// f32, or cut to bf16.
std::vector<std::byte> rowsOfFloats(std::mt19937 &rng, int64_t n, size_t each) {
  std::uniform_real_distribution<float> draw(-1, 1);
  std::vector<std::byte> bytes(size_t(n * kTerms) * each);
  for (size_t i = 0; i < bytes.size(); i += each) {
    float value = draw(rng);
    std::memcpy(bytes.data() + i, reinterpret_cast<const std::byte *>(&value) + sizeof value - each, each);
  }
  return bytes;
}

Experts makeExperts(std::mt19937 &rng, std::string_view layout, int64_t n, bool isGated) {
  Experts made{{DType::F32, {kExperts, n, kTerms}, {}}, {}};
  PackedFormat format = *PackedFormat::named(layout);
  int64_t bytes = isGated ? *gatedBytes(format, kTerms, n) : *format.bytes(kTerms, n);
  for (int64_t e = 0; e < kExperts; ++e) {
    Tensor one{DType::F32, {n, kTerms}, {}};
    one.bytes.resize(size_t(bytes));
    EXPECT_TRUE((format.isFloat()
                     ? packFloats(layout, kTerms, n, true, rowsOfFloats(rng, n, layout == "f32" ? 4 : 2),
                                  one.bytes, isGated)
                     : packGguf(layout, kTerms, n, rowsOfBlocks(rng, n), one.bytes, isGated))
                    .isOk());
    made.all.bytes.insert(made.all.bytes.end(), one.bytes.begin(), one.bytes.end());
    made.one.push_back(std::move(one));
  }
  return made;
}

const Kernel *productOf(Isa isa) {
  for (const Kernel *row : packedRows())
    if (row->isa == isa)
      return row;
  return nullptr;
}

struct Case {
  const char *layout;
  bool isInt8, isGated, sharesRows;
  int64_t tokens, slots, n;
};

void check(const Case &c) {
  std::mt19937 rng(uint32_t(c.tokens * 7 + c.n));
  Experts experts = makeExperts(rng, c.layout, c.n, c.isGated);
  AttrList attrs;
  attrs.set("packed", c.layout).set("arithmetic", c.isInt8 ? "int8" : "").set("activation", "silu");
  if (c.isGated)
    attrs.set("gated", 1);
  AttrList product = attrs;
  product.set("trans_b", 1);
  int64_t columns = c.isGated ? c.n / 2 : c.n, perToken = c.sharesRows ? 1 : c.slots;
  Tensor x = uniform({c.tokens, perToken, kTerms}, rng);
  Tensor ids =
      filled<int64_t>(DType::I64, {c.tokens, c.slots}, [&] { return int64_t(rng() % (kExperts + 2)) - 1; });
  for (const Kernel *row : rowsOf("packed_experts")) {
    std::vector<Tensor> in = {x, experts.all, ids};
    Tensor y = runRow(*row, in, attrs)[0];
    ASSERT_EQ(y.dims, (std::vector<int64_t>{c.tokens, c.slots, columns}));
    for (int64_t pair = 0; pair < c.tokens * c.slots; ++pair) {
      int64_t expert = ids.as<int64_t>()[pair];
      std::vector<float> want(size_t(columns), 0.0f);
      if (expert >= 0 && expert < kExperts) {
        Tensor own = zeros(DType::F32, {1, kTerms});
        std::memcpy(own.bytes.data(), x.as<float>() + (c.sharesRows ? pair / c.slots : pair) * kTerms,
                    kTerms * 4);
        std::vector<Tensor> alone = {own, experts.one[size_t(expert)]};
        Tensor result = runRow(*productOf(row->isa), alone, product)[0];
        want.assign(result.as<float>(), result.as<float>() + columns);
      }
      for (int64_t i = 0; i < columns; ++i)
        ASSERT_EQ(y.as<float>()[pair * columns + i], want[size_t(i)])
            << row->name << " " << c.layout << " pair " << pair << " column " << i;
    }
  }
}

TEST(PackedExperts, AreTheProductsOfTheirRowsAlone) {
  for (const char *layout : {"q4_0", "bf16", "f32"})
    for (bool isInt8 : {false, true})
      for (bool isGated : {false, true})
        for (bool sharesRows : {false, true})
          check({layout, isInt8, isGated, sharesRows, 9, 3, 38});
  check({"q4_0", true, false, true, 1, 2, 16});
  check({"q4_0", true, true, true, 400, 2, 34}); // experts of more rows than a tile
}

TEST(PackedExperts, EmptySizes) {
  check({"q4_0", true, false, true, 0, 3, 16});
  check({"q4_0", false, false, false, 3, 0, 16});
  check({"q4_0", false, true, true, 3, 2, 0});
}

TEST(PackedExperts, ShapesThatDoNotFit) {
  Tensor x = zeros(DType::F32, {4, 1, 32}), w = zeros(DType::F32, {3, 8, 32}),
         ids = zeros(DType::I64, {4, 2});
  AttrList q4;
  q4.set("packed", "q4_0");
  EXPECT_EQ(refusal("packed_experts", {x, w, ids}, q4), "");
  EXPECT_NE(refusal("packed_experts", {x, w, ids}, AttrList()), "");
  EXPECT_NE(refusal("packed_experts", {zeros(DType::F32, {4, 3, 32}), w, ids}, q4), "");
  EXPECT_NE(refusal("packed_experts", {zeros(DType::F32, {4, 1, 31}), w, ids}, q4), "");
  EXPECT_NE(refusal("packed_experts", {zeros(DType::F16, {4, 1, 32}), w, ids}, q4), "");
  EXPECT_NE(refusal("packed_experts", {x, zeros(DType::F32, {8, 32}), ids}, q4), "");
  EXPECT_NE(refusal("packed_experts", {x, w, zeros(DType::I64, {5, 2})}, q4), "");
  EXPECT_NE(refusal("packed_experts", {x, w, zeros(DType::F32, {4, 2})}, q4), "");
  EXPECT_NE(refusal("packed_experts", {x, zeros(DType::F32, {3, 7, 32}), ids}, AttrList(q4).set("gated", 1)),
            "");
  EXPECT_NE(refusal("packed_experts", {x, w, ids}, AttrList(q4).set("activation", "wobble")), "");
}

} // namespace
} // namespace dspark
