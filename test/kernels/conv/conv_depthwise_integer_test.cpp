// Depthwise qlinear_conv with packed weights: nearest(sum * (xs * ws / ys) + bias / ys) + zero in f32, or in
// f32 sum * (xs * ws) + bias, of the exact sum, at blocks of channels of every width.
#include "runtime/format/PackedLayout.h"
#include "test/kernels/byte_tensor.h"

namespace dspark {
namespace {

using namespace test;

struct Shape {
  int64_t channels, height, width, kernelH, kernelW, stride[2], dilation[2], pads[4]; // pads as ONNX has them
  int64_t outH() const {
    return (height + pads[0] + pads[2] - (kernelH - 1) * dilation[0] - 1) / stride[0] + 1;
  }
  int64_t outW() const {
    return (width + pads[1] + pads[3] - (kernelW - 1) * dilation[1] - 1) / stride[1] + 1;
  }
};

constexpr int64_t kBatch = 2;

// x is [n, height, width, channels], w [channels, 1, kernelH, kernelW], i an element of y.
int64_t sumAt(const Shape &s, const Tensor &x, int64_t xZero, const Tensor &w, int64_t wZero, int64_t i) {
  int64_t c = i % s.channels, ow = i / s.channels % s.outW(), oh = i / s.channels / s.outW() % s.outH(),
          n = i / s.channels / s.outW() / s.outH(), sum = 0;
  for (int64_t ky = 0; ky < s.kernelH; ++ky)
    for (int64_t kx = 0; kx < s.kernelW; ++kx) {
      int64_t ih = oh * s.stride[0] - s.pads[0] + ky * s.dilation[0],
              iw = ow * s.stride[1] - s.pads[1] + kx * s.dilation[1];
      if (ih >= 0 && ih < s.height && iw >= 0 && iw < s.width)
        sum += (byteAt(x, ((n * s.height + ih) * s.width + iw) * s.channels + c) - xZero) *
               (byteAt(w, (c * s.kernelH + ky) * s.kernelW + kx) - wZero);
    }
  return sum;
}

void check(const Shape &s, DType xType, DType yType, DType wType, int wZero, std::mt19937 &rng) {
  auto scalar = [](auto v, DType type) { return filled<decltype(v)>(type, {}, [&] { return v; }); };
  auto byte = [&] { // the extremes in half of the places
    const uint8_t extremes[] = {0, 255, 127, 128};
    uint32_t bits = rng();
    return bits % 2 ? extremes[bits >> 8 & 3] : uint8_t(bits >> 16);
  };
  Tensor w = filled<uint8_t>(wType, {s.channels, 1, s.kernelH, s.kernelW}, byte), packed = w;
  ConvWeight shape{s.channels, s.channels, s.channels, s.kernelH * s.kernelW, false, 1, wType == DType::I8};
  packed.bytes.assign(*packedBytes("depthwise", shape), std::byte(0xff));
  ASSERT_TRUE(packWeight("depthwise", shape, w.bytes, packed.bytes).isOk());
  bool isFloat = yType == DType::F32, hasWholeBias = !isFloat && rng() % 2 != 0;
  float yScale = isFloat ? 1.0f : 0.7f;
  int yZero = isFloat ? 0 : yType == DType::I8 ? -28 : 100;
  std::vector<Tensor> in = {
      filled<uint8_t>(xType, {kBatch, s.height, s.width, s.channels}, byte),
      scalar(0.02f, DType::F32),
      filled<uint8_t>(xType, {}, byte),
      packed,
      filled<float>(DType::F32, {s.channels}, [&] { return 0.001f * float(1 + rng() % 50); }),
      scalar(uint8_t(wZero), wType),
      isFloat ? Tensor{} : scalar(yScale, DType::F32),
      isFloat ? Tensor{} : scalar(uint8_t(yZero), yType),
      hasWholeBias ? filled<int32_t>(DType::I32, {s.channels}, [&] { return int32_t(rng() % 20000) - 10000; })
                   : uniform({s.channels}, rng)};
  bool isBounded = !isFloat && rng() % 2 != 0;
  AttrList attrs;
  attrs.set("strides", {s.stride[0], s.stride[1]}).set("dilations", {s.dilation[0], s.dilation[1]});
  attrs.set("pads", {s.pads[0], s.pads[1], s.pads[2], s.pads[3]}).set("group", s.channels);
  attrs.set("layout", "nhwc").set("packed", "depthwise").set("kernel_shape", {s.kernelH, s.kernelW});
  if (isBounded)
    attrs.set("activation", "clip").setFloat("act_alpha", -20).setFloat("act_beta", 35.1);
  float low = float(yType == DType::I8 ? -128 : 0) - float(yZero), high = low + 255;
  if (isBounded)
    low = std::max(low, std::nearbyint(-20 / yScale)), high = std::min(high, std::nearbyint(35.1f / yScale));
  size_t rows = 0;
  for (const Kernel *row : rowsOf("qlinear_conv")) {
    if (std::string_view(row->name).find("depthwise") == std::string_view::npos)
      continue;
    ++rows;
    Tensor y = runRow(*row, in, attrs)[0];
    ASSERT_EQ(y.elements(), kBatch * s.outH() * s.outW() * s.channels);
    for (int64_t i = 0; i < y.elements(); ++i) {
      int64_t c = i % s.channels, sum = sumAt(s, in[0], byteAt(in[2], 0), w, byteAt(in[5], 0), i);
      if (hasWholeBias)
        sum += in[8].as<int32_t>()[c];
      float value = float(sum) * (0.02f * in[4].as<float>()[c] / yScale);
      value += hasWholeBias ? 0 : in[8].as<float>()[c] / yScale;
      if (isFloat)
        ASSERT_EQ(y.as<float>()[i], value) << row->name << " element " << i;
      else
        ASSERT_EQ(byteAt(y, i), int64_t(std::nearbyint(std::clamp(value, low, high))) + yZero)
            << row->name << " element " << i;
    }
  }
  EXPECT_GT(rows, 0u);
}

TEST(ConvDepthwiseInteger, EveryWidthOfBlocks) {
  std::mt19937 rng(1);
  for (int64_t channels : {5, 16, 23, 32, 37, 48, 64, 77, 96, 100, 144})
    for (const Shape &s : {Shape{channels, 6, 9, 3, 3, {1, 1}, {1, 1}, {1, 1, 1, 1}},
                           Shape{channels, 7, 10, 3, 3, {2, 2}, {1, 1}, {0, 0, 1, 1}},
                           Shape{channels, 7, 8, 5, 5, {1, 1}, {1, 1}, {2, 2, 2, 2}},
                           Shape{channels, 9, 11, 5, 5, {2, 2}, {1, 1}, {2, 2, 2, 2}}})
      for (DType type : {DType::U8, DType::I8})
        for (DType yType : {DType::U8, DType::I8, DType::F32})
          check(s, type, yType, DType::I8, 0, rng);
}

TEST(ConvDepthwiseInteger, OtherShapes) {
  std::mt19937 rng(2);
  for (int64_t channels : {16, 80})
    for (const Shape &s : {Shape{channels, 1, 1, 3, 3, {1, 1}, {1, 1}, {1, 1, 1, 1}}, // padding all around
                           Shape{channels, 2, 1, 5, 5, {2, 2}, {1, 1}, {2, 2, 2, 2}},
                           Shape{channels, 6, 13, 3, 3, {2, 1}, {3, 1}, {3, 1, 3, 2}}, // far lines
                           Shape{channels, 6, 9, 3, 3, {1, 1}, {1, 2}, {1, 2, 1, 2}},  // far columns
                           Shape{channels, 6, 9, 3, 3, {1, 3}, {1, 1}, {1, 1, 1, 1}},
                           Shape{channels, 5, 9, 1, 7, {1, 1}, {1, 1}, {0, 3, 0, 3}},
                           Shape{channels, 8, 9, 7, 7, {1, 1}, {1, 1}, {3, 3, 3, 3}},
                           Shape{channels, 4, 20, 3, 3, {1, 1}, {1, 1}, {2, 5, 2, 4}}}) // outputs of padding
      for (DType type : {DType::U8, DType::I8})
        for (DType yType : {DType::U8, DType::F32})
          check(s, type, yType, DType::I8, 0, rng);
}

// Weights less a zero point may need more than 8 bits; unsigned ones with 128 are signed ones.
TEST(ConvDepthwiseInteger, ZeroPointsOfWeights) {
  std::mt19937 rng(3);
  for (int64_t channels : {16, 80})
    for (int zero : {0, 128, 131})
      for (DType type : {DType::U8, DType::I8})
        check({channels, 6, 9, 3, 3, {1, 1}, {1, 1}, {1, 1, 1, 1}}, DType::U8, DType::U8, type, zero, rng);
}

} // namespace
} // namespace dspark
