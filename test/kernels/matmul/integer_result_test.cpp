// f32 results of products of bytes: what is added to them and the function applied are those of the result
// without either, to the bit.
#include "kernels/matmul/epilogue.h"
#include "kernels/matmul/scalar_activation.h"
#include "runtime/format/PackedLayout.h"
#include "test/kernels/accepts.h"
#include <limits>

namespace dspark {
namespace {

using namespace test;

// Functions that round at most one product.
void activate(AttrList &attrs, const char *name) {
  attrs.set("activation", name);
  if (std::string_view(name) == "clip")
    attrs.setFloat("act_alpha", -20).setFloat("act_beta", 35.1);
}

// `in` up to the bias; `attrs` makes the attributes with an activation.
void check(const char *op, std::vector<Tensor> in, auto attrs, std::mt19937 &rng) {
  size_t taken = 0;
  for (const Kernel *row : rowsOf(op)) {
    if (!accepts(*row, in, attrs("")))
      continue;
    ++taken;
    Tensor plain = runRow(*row, in, attrs(""))[0];
    Tensor residual = filled<float>(DType::F32, plain.dims, [&] { return float(rng() % 2001) * 0.1f - 100; });
    for (const char *name : {"", "relu", "clip", "leaky_relu"})
      for (bool hasResidual : {false, true}) {
        std::vector<Tensor> given = in;
        if (hasResidual)
          given.push_back(residual);
        AttrList list = attrs(name);
        Epilogue epilogue;
        epilogue.read(list.view());
        Tensor y = runRow(*row, given, list)[0];
        for (int64_t i = 0; i < y.elements(); ++i) {
          float sum = plain.as<float>()[i] + (hasResidual ? residual.as<float>()[i] : 0);
          ASSERT_EQ(y.as<float>()[i], activateScalar(epilogue.activation, sum, epilogue.alpha, epilogue.beta))
              << row->name << " " << name << (hasResidual ? " with residual " : " ") << i;
        }
      }
  }
  EXPECT_GT(taken, 0u);
}

Tensor packed(const char *layout, const auto &shape, Tensor w) {
  std::vector<std::byte> bytes(*packedBytes(layout, shape), std::byte(0xff));
  EXPECT_TRUE(packWeight(layout, shape, w.bytes, bytes).isOk());
  w.bytes = std::move(bytes);
  return w;
}

Tensor positive(std::vector<int64_t> dims, std::mt19937 &rng) {
  return filled<float>(DType::F32, std::move(dims), [&] { return 0.001f * float(1 + rng() % 50); });
}

TEST(IntegerResult, MatmulEpilogues) {
  std::mt19937 rng(1);
  for (auto [m, n, k] : {std::array<int64_t, 3>{1, 40, 33}, {7, 17, 64}, {101, 35, 600}})
    for (int form = 0; form < 8; ++form) {
      bool isPacked = (form & 1) != 0, hasRowScales = (form & 2) != 0, hasZero = (form & 4) != 0;
      Tensor w = filled<uint8_t>(DType::I8, {k, n}, rng);
      auto attrs = [&](const char *activation) {
        AttrList list;
        list.set("packed", isPacked ? "panel16k4" : "");
        activate(list, activation);
        return list;
      };
      std::vector<int64_t> rows = hasRowScales ? std::vector{m} : std::vector<int64_t>{};
      check("qlinear_matmul",
            {filled<uint8_t>(DType::U8, {m, k}, rng),
             positive(rows, rng),
             filled<uint8_t>(DType::U8, rows, rng),
             isPacked ? packed("panel16k4", MatrixWeight{1, k, n, false, 1, true}, w) : w,
             positive({n}, rng),
             filled<uint8_t>(DType::I8, {}, [&] { return hasZero ? 3 : 0; }),
             {},
             {},
             uniform({n}, rng)},
            attrs, rng);
    }
}

// Bytes of results that no integer holds: bounded, and the least for NaN, in matrices and depthwise.
TEST(IntegerResult, LargeScalesSaturate) {
  std::mt19937 rng(3);
  constexpr int64_t m = 17, n = 48, k = 36;
  for (float scale : {1e-3f, 0.4f, 0.6f, 1e6f, 1e30f, std::numeric_limits<float>::infinity()})
    for (bool isDepthwise : {false, true}) {
      Tensor w = isDepthwise ? filled<uint8_t>(DType::I8, {n, 1, 3, 3}, rng)
                             : filled<uint8_t>(DType::I8, {k, n}, rng);
      Tensor x = isDepthwise ? filled<uint8_t>(DType::U8, {1, m, 3, n}, rng)
                             : filled<uint8_t>(DType::U8, {m, k}, rng);
      auto value = [](auto v, DType type) { return filled<decltype(v)>(type, {}, [&] { return v; }); };
      std::vector<Tensor> in = {x,
                                value(scale, DType::F32),
                                value(uint8_t(120), DType::U8),
                                isDepthwise ? packed("depthwise", ConvWeight{n, n, n, 9, false, 1, true}, w)
                                            : packed("panel16k4", MatrixWeight{1, k, n, false, 1, true}, w),
                                value(1.0f, DType::F32),
                                value(uint8_t(0), DType::I8),
                                value(1.0f, DType::F32),
                                value(uint8_t(100), DType::U8)};
      AttrList attrs;
      attrs.set("packed", isDepthwise ? "depthwise" : "panel16k4");
      if (isDepthwise)
        attrs.set("pads", {1, 1, 1, 1}).set("group", n).set("layout", "nhwc");
      size_t taken = 0;
      for (const Kernel *row : rowsOf(isDepthwise ? "qlinear_conv" : "qlinear_matmul")) {
        if (!accepts(*row, in, attrs))
          continue;
        ++taken;
        Tensor y = runRow(*row, in, attrs)[0];
        for (int64_t i = 0; i < y.elements(); ++i) {
          int64_t sum = 0, column = i % n, r = i / n;
          if (isDepthwise) {
            for (int64_t tap = 0; tap < 9; ++tap) {
              int64_t line = r / 3 - 1 + tap / 3, at = r % 3 - 1 + tap % 3;
              if (line >= 0 && line < m && at >= 0 && at < 3)
                sum +=
                    (x.as<uint8_t>()[(line * 3 + at) * n + column] - 120) * w.as<int8_t>()[column * 9 + tap];
            }
          } else {
            for (int64_t j = 0; j < k; ++j)
              sum += (x.as<uint8_t>()[r * k + j] - 120) * w.as<int8_t>()[j * n + column];
          }
          float exact = std::nearbyint(float(sum) * scale);
          ASSERT_EQ(int(y.as<uint8_t>()[i]), 100 + int(exact > -100 ? std::min(exact, 155.0f) : -100))
              << row->name << " scale " << scale << " element " << i;
        }
      }
      EXPECT_GT(taken, 0u);
    }
}

struct Image {
  int64_t batch, height, width, inputs, outputs, group;
  const char *layout; // of the weights; "": as ONNX has them, with channels first
};

// Convolutions of 3x3: direct, Winograd's (16 channels, stride 1), depthwise with a block of channels that
// overlaps another, and channels first.
TEST(IntegerResult, ConvolutionEpilogues) {
  std::mt19937 rng(2);
  for (const Image &c : {Image{2, 5, 7, 3, 20, 1, "panel16k4"}, Image{2, 11, 9, 48, 20, 1, "panel16k4"},
                         Image{1, 9, 6, 37, 37, 37, "depthwise"}, Image{2, 4, 5, 6, 18, 1, ""}})
    for (bool hasZero : {false, true}) {
      bool isLast = c.layout[0] != 0;
      Tensor w = filled<uint8_t>(DType::I8, {c.outputs, c.inputs / c.group, 3, 3}, rng);
      ConvWeight shape{c.group, c.inputs, c.outputs, 9, false, 1, true};
      auto attrs = [&](const char *activation) {
        AttrList list;
        list.set("packed", c.layout).set("pads", {1, 1, 1, 1}).set("group", c.group);
        list.set("layout", isLast ? "nhwc" : "nchw");
        activate(list, activation);
        return list;
      };
      check("qlinear_conv",
            {filled<uint8_t>(DType::U8,
                             isLast ? std::vector{c.batch, c.height, c.width, c.inputs}
                                    : std::vector{c.batch, c.inputs, c.height, c.width},
                             rng),
             positive({}, rng),
             filled<uint8_t>(DType::U8, {}, rng),
             isLast ? packed(c.layout, shape, w) : w,
             positive({c.outputs}, rng),
             filled<uint8_t>(DType::I8, {}, [&] { return hasZero ? 3 : 0; }),
             {},
             {},
             uniform({c.outputs}, rng)},
            attrs, rng);
    }
}

} // namespace
} // namespace dspark
