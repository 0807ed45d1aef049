// qlinear_conv's Winograd rows give the very sums of the definition, whatever the bytes are.
#include "test/kernels/accepts.h"
#include "test/kernels/byte_tensor.h"
#include "test/kernels/conv/winograd_case.h"

namespace dspark {
namespace {

using namespace test;

using Case = ImageCase;

Tensor packed(const Tensor &w) { return packedFilters("panel16k4", w); }
AttrList attrsOf(const Case &c) { return c.attrs("panel16k4"); }
std::vector<const Kernel *> winogradRows() { return rowsNamed("qlinear_conv", "winograd"); }

// Output i of the definition, x [n, h, w, c] and w [o, c, 3, 3] less their zero points.
int64_t sumAt(const Case &c, const Tensor &x, int64_t xZero, const Tensor &w, const Tensor &wZero,
              int64_t i) {
  int64_t o = i % c.outputs, pixel = i / c.outputs, column = pixel % c.outWidth(),
          row = pixel / c.outWidth() % c.outHeight(), n = pixel / (c.outWidth() * c.outHeight()), sum = 0;
  for (int64_t k = 0; k < 9; ++k) {
    int64_t y = row - c.pads[0] + k / 3, left = column - c.pads[1] + k % 3;
    if (y < 0 || y >= c.height || left < 0 || left >= c.width)
      continue;
    for (int64_t j = 0; j < c.inputs; ++j)
      sum += (byteAt(x, ((n * c.height + y) * c.width + left) * c.inputs + j) - xZero) *
             (byteAt(w, (o * c.inputs + j) * 9 + k) - byteAt(wZero, wZero.elements() == 1 ? 0 : o));
  }
  return sum;
}

// With scales of 1 and no scale of the result, y is the sum as f32 has it.
void check(const Case &c, const Tensor &x, uint8_t xZero, const Tensor &w, const Tensor &wZero) {
  std::vector<Tensor> in = {x,         floats({1}, {}), filled<uint8_t>(x.type, {}, [&] { return xZero; }),
                            packed(w), floats({1}, {}), wZero};
  for (const Kernel *row : winogradRows()) {
    // Higher levels multiply more at a time, so that the transform pays in fewer cases.
    if (!accepts(*row, in, attrsOf(c))) {
      EXPECT_EQ(row->isa, Isa::Avx512);
      continue;
    }
    Tensor y = runRow(*row, in, attrsOf(c))[0];
    for (int64_t i = 0; i < y.elements(); ++i)
      ASSERT_EQ(y.as<float>()[i], float(sumAt(c, x, byteAt(in[2], 0), w, wZero, i))) << row->name << " " << i;
  }
}

TEST(ConvWinogradInteger, IsExact) {
  std::mt19937 rng(1);
  for (const Case &c : {Case{1, 8, 8, 16, 16}, Case{2, 11, 9, 48, 20}, Case{1, 5, 7, 128, 33, {0, 1, 2, 1}},
                        Case{3, 10, 6, 32, 1, {0, 0, 0, 0}}, Case{1, 2, 40, 240, 7}, Case{1, 24, 24, 32, 48}})
    for (int form = 0; form < 8; ++form) {
      DType xType = form & 1 ? DType::I8 : DType::U8, wType = form & 2 ? DType::U8 : DType::I8;
      Tensor x = filled<uint8_t>(xType, {c.batch, c.height, c.width, c.inputs}, rng),
             w = filled<uint8_t>(wType, {c.outputs, c.inputs, 3, 3}, rng);
      uint8_t none = wType == DType::U8 ? 128 : 0; // what packing takes off
      check(c, x, uint8_t(rng()), w,
            form & 4 ? filled<uint8_t>(wType, {c.outputs}, rng)
                     : filled<uint8_t>(wType, {}, [&] { return none; }));
    }
}

// The largest sums: every pixel 255 from the zero point, every weight -128 or 255 from its own.
TEST(ConvWinogradInteger, IsExactAtTheBounds) {
  Case c{1, 9, 8, 224, 17};
  for (bool hasZero : {false, true}) {
    Tensor x = filled<uint8_t>(DType::U8, {1, c.height, c.width, c.inputs}, [] { return 255; }),
           w = filled<int8_t>(DType::I8, {c.outputs, c.inputs, 3, 3}, [] { return -128; });
    check(c, x, 0, w, filled<int8_t>(DType::I8, {}, [&] { return hasZero ? 127 : 0; }));
    // Signs that make a transform's rows largest: pixels and weights alternate.
    std::mt19937 rng(3);
    for (int64_t i = 0; i < x.elements(); ++i)
      x.as<uint8_t>()[i] = (i / c.inputs + i / c.inputs / c.width) % 2 != 0 ? 255 : 0;
    for (int64_t i = 0; i < w.elements(); ++i)
      w.as<int8_t>()[i] = i % 9 % 2 != 0 ? 127 : -128;
    check(c, x, 0, w, filled<int8_t>(DType::I8, {}, [&] { return hasZero ? -128 : 0; }));
  }
}

// Bytes are those of the direct rows.
TEST(ConvWinogradInteger, BytesAreThoseOfTheDirectProduct) {
  std::mt19937 rng(5);
  Case c{2, 12, 16, 64, 40}; // whole tiles, which pay at every level
  std::vector<Tensor> in = {
      filled<uint8_t>(DType::U8, {c.batch, c.height, c.width, c.inputs}, rng),
      floats({0.02f}, {}),
      filled<uint8_t>(DType::U8, {}, rng),
      packed(filled<uint8_t>(DType::I8, {c.outputs, c.inputs, 3, 3}, rng)),
      filled<float>(DType::F32, {c.outputs}, [&] { return 0.001f * float(1 + rng() % 50); }),
      zeros(DType::I8, {}),
      floats({0.7f}, {}),
      filled<uint8_t>(DType::U8, {}, [] { return 9; }),
      filled<int32_t>(DType::I32, {c.outputs}, [&] { return int32_t(rng() % 20000) - 10000; })};
  AttrList attrs = attrsOf(c);
  attrs.set("activation", "relu");
  for (const Kernel *row : winogradRows())
    for (const Kernel *direct : rowsOf("qlinear_conv"))
      if (std::string_view(direct->name).find("winograd") == std::string_view::npos &&
          std::string_view(direct->name).find("depthwise") == std::string_view::npos)
        EXPECT_EQ(runRow(*row, in, attrs)[0].bytes, runRow(*direct, in, attrs)[0].bytes)
            << row->name << " " << direct->name;
}

TEST(ConvWinogradInteger, TakesOnlyWhatItIsCheaperFor) {
  auto isChosen = [](const Case &c, int64_t stride) {
    std::vector<Tensor> in = {
        zeros(DType::U8, {c.batch, c.height, c.width, c.inputs}), floats({1}, {}), zeros(DType::U8, {}),
        packed(zeros(DType::I8, {c.outputs, c.inputs, 3, 3})),    floats({1}, {}), zeros(DType::I8, {})};
    AttrList attrs = attrsOf(c);
    attrs.set("strides", {stride, stride});
    return accepts(*winogradRows().back(), in, attrs);
  };
  EXPECT_TRUE(isChosen({1, 56, 56, 64, 64}, 1));
  EXPECT_TRUE(isChosen({1, 14, 14, 256, 256}, 1));
  EXPECT_FALSE(isChosen({1, 56, 56, 64, 64}, 2));
  EXPECT_FALSE(isChosen({1, 56, 56, 24, 24}, 1)); // channels come in sixteens
  EXPECT_FALSE(isChosen({1, 2, 2, 512, 512}, 1)); // one tile does not pay for the filters
}

} // namespace
} // namespace dspark
