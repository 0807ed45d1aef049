// resize against hand-derived values, and against a second evaluation that shares nothing with the tables:
// direct sums over the definition of every mode. Then layouts, element types, symbolic shapes and refusals.
#include "test/kernels/kernel_case.h"
#include <cmath>
#include <gmock/gmock.h>

namespace dspark::test {
namespace {

std::vector<float> values(const Tensor &t) { return {t.as<float>(), t.as<float>() + t.elements()}; }

Tensor resize(Tensor x, std::vector<float> scales, const AttrList &attrs) {
  auto count = int64_t(scales.size());
  return runOp("resize", {std::move(x), {}, floats(std::move(scales), {count})}, attrs)[0];
}
Tensor resizeTo(Tensor x, std::vector<int64_t> sizes, const AttrList &attrs) {
  return runOp("resize", {std::move(x), {}, {}, indices(std::move(sizes))}, attrs)[0];
}
Tensor ramp(std::vector<int64_t> dims) {
  int64_t next = 0;
  return filled<float>(DType::F32, std::move(dims), [&] { return float(next++); });
}

TEST(Resize, NearestModesBreakTiesAsNamed) {
  // Two outputs of four inputs read coordinates 0.5 and 2.5.
  for (auto [mode, want] :
       {std::pair("round_prefer_floor", std::vector<float>{0, 2}),
        std::pair("round_prefer_ceil", std::vector<float>{1, 3}),
        std::pair("floor", std::vector<float>{0, 2}), std::pair("ceil", std::vector<float>{1, 3})}) {
    AttrList attrs;
    attrs.set("nearest_mode", mode);
    EXPECT_EQ(values(resize(ramp({4}), {0.5}, attrs)), want) << mode;
  }
}

TEST(Resize, CoordinateModesOfLinear) {
  AttrList linear;
  linear.set("mode", "linear");
  EXPECT_EQ(values(resize(ramp({2}), {2}, linear)), (std::vector<float>{0, 0.25, 0.75, 1}));
  AttrList corners = linear, asymmetric = linear, crop = linear;
  corners.set("coordinate_transformation_mode", "align_corners");
  EXPECT_EQ(values(resize(ramp({3}), {2}, corners)), (std::vector<float>{0, 0.4f, 0.8f, 1.2f, 1.6f, 2}));
  asymmetric.set("coordinate_transformation_mode", "asymmetric");
  EXPECT_EQ(values(resize(ramp({2}), {2}, asymmetric)), (std::vector<float>{0, 0.5, 1, 1}));
  crop.set("coordinate_transformation_mode", "tf_crop_and_resize").setFloat("extrapolation_value", 7);
  Tensor roi = floats({0.5, 1.5}, {2});
  EXPECT_EQ(values(runOp("resize", {ramp({5}), roi, {}, indices({3})}, crop)[0]),
            (std::vector<float>{2, 4, 7}));
}

// Output i of one axis, straight from the definition in half_pixel coordinates.
double directAt(const std::vector<float> &x, int64_t i, double scale, bool cubic, bool antialias,
                bool exclude) {
  double centre = (double(i) + 0.5) / scale - 0.5, stretch = antialias ? std::min(1.0, scale) : 1, sum = 0,
         total = 0;
  auto n = int64_t(x.size());
  for (int64_t j = -3 * n; j < 4 * n; ++j) {
    double d = std::fabs((double(j) - centre) * stretch), a = -0.75, w;
    if (cubic)
      w = d <= 1  ? (a + 2) * d * d * d - (a + 3) * d * d + 1
          : d < 2 ? a * d * d * d - 5 * a * d * d + 8 * a * d - 4 * a
                  : 0;
    else
      w = std::max(0.0, 1 - d);
    if (exclude && (j < 0 || j >= n))
      continue;
    sum += w * x[size_t(std::clamp<int64_t>(j, 0, n - 1))], total += w;
  }
  return sum / total;
}

TEST(Resize, FiltersMatchTheirDefinition) {
  std::mt19937 rng(1);
  Tensor x = uniform({11}, rng);
  for (bool cubic : {false, true})
    for (bool antialias : {false, true})
      for (bool exclude : {false, true})
        for (int64_t size : {1, 4, 11, 27}) {
          AttrList attrs;
          attrs.set("mode", cubic ? "cubic" : "linear")
              .set("antialias", antialias)
              .set("exclude_outside", exclude);
          Tensor y = resizeTo(x, {size}, attrs);
          for (int64_t i = 0; i < size; ++i) // at most 44 taps of magnitude about 1
            ASSERT_NEAR(y.as<float>()[i],
                        directAt(values(x), i, double(size) / 11, cubic, antialias, exclude), 44 * 6e-8)
                << cubic << antialias << exclude << " size " << size << " element " << i;
        }
}

TEST(Resize, ChannelsLastIsTheSameImage) {
  std::mt19937 rng(2);
  for (const char *mode : {"nearest", "linear", "cubic"}) {
    Tensor x = uniform({2, 3, 4, 5}, rng), last = zeros(DType::F32, {2, 4, 5, 3});
    for (int64_t n = 0; n < 2; ++n)
      for (int64_t c = 0; c < 3; ++c)
        for (int64_t p = 0; p < 20; ++p)
          last.as<float>()[(n * 20 + p) * 3 + c] = x.as<float>()[(n * 3 + c) * 20 + p];
    AttrList first, second;
    first.set("mode", mode);
    second.set("mode", mode).set("layout", "nhwc");
    Tensor a = resize(x, {1, 1, 2, 3}, first), b = resize(last, {1, 1, 2, 3}, second);
    ASSERT_EQ(b.dims, (std::vector<int64_t>{2, 8, 15, 3}));
    for (int64_t n = 0; n < 2; ++n)
      for (int64_t c = 0; c < 3; ++c)
        for (int64_t p = 0; p < 120; ++p)
          ASSERT_EQ(b.as<float>()[(n * 120 + p) * 3 + c], a.as<float>()[(n * 3 + c) * 120 + p]) << mode;
  }
}

TEST(Resize, TilesDoNotShow) {
  std::mt19937 rng(3);
  Tensor x = uniform({1, 8, 60, 50}, rng);
  for (const char *mode : {"nearest", "linear"}) {
    AttrList attrs;
    attrs.set("mode", mode);
    std::vector<Tensor> in = {x, {}, floats({1, 1, 2, 2}, {4})};
    EXPECT_EQ(runOp("resize", in, attrs, 1, 1)[0].bytes, runOp("resize", in, attrs, 1, 3)[0].bytes);
  }
}

TEST(Resize, IntegersRoundAndSaturate) {
  Tensor x = tensorOf<uint8_t>(DType::U8, {0, 255, 0, 255}, {4});
  AttrList attrs;
  attrs.set("mode", "cubic");
  Tensor y = resizeTo(x, {8}, attrs);
  EXPECT_EQ(y.type, DType::U8);
  EXPECT_EQ(y.as<uint8_t>()[0], 0);   // the cubic filter overshoots below 0 here
  EXPECT_EQ(y.as<uint8_t>()[7], 255); // and above 255 here
}

TEST(Resize, AspectPoliciesShareOneScale) {
  AttrList larger, smaller;
  larger.set("keep_aspect_ratio_policy", "not_larger");
  smaller.set("keep_aspect_ratio_policy", "not_smaller");
  EXPECT_EQ(resizeTo(ramp({4, 8}), {3, 3}, larger).dims,
            (std::vector<int64_t>{2, 3})); // 4 * 3/8 = 1.5, rounded up
  EXPECT_EQ(resizeTo(ramp({4, 8}), {3, 3}, smaller).dims, (std::vector<int64_t>{3, 6}));
}

TEST(Resize, SymbolicDims) {
  DimTable table;
  Dim h = table.symbol("h");
  std::vector<TensorInfo> in = {
      TensorInfo::make(DType::F32, {Dim(1), Dim(3), h, Dim(7)}), {}, infoOf(floats({1, 1, 2, 0.5}, {4}))};
  InferContext ctx;
  ctx.in = in;
  ctx.out.resize(1);
  ASSERT_EQ(findOp("resize")->infer(ctx), InferStatus::Ok);
  EXPECT_EQ(ctx.out[0].str(), "f32[1, 3, h*2, 3]");
  in[2].hasContents = false;
  EXPECT_EQ(findOp("resize")->infer(ctx), InferStatus::NeedsContents);
  EXPECT_EQ(ctx.needed, 2);
}

TEST(Resize, Refusals) {
  Tensor x = ramp({2, 2});
  EXPECT_THAT(refusal("resize", {x}), testing::HasSubstr("exactly one of scales and sizes"));
  EXPECT_THAT(refusal("resize", {x, {}, floats({1, -1}, {2})}), testing::HasSubstr("positive"));
  EXPECT_THAT(refusal("resize", {x, {}, {}, indices({4})}), testing::HasSubstr("2 entries"));
  EXPECT_THAT(refusal("resize", {zeros(DType::F32, {0, 2}), {}, {}, indices({4, 4})}),
              testing::HasSubstr("empty"));
  AttrList attrs;
  attrs.set("mode", "lanczos");
  EXPECT_THAT(refusal("resize", {x, {}, floats({1, 1}, {2})}, attrs), testing::HasSubstr("lanczos"));
}

} // namespace
} // namespace dspark::test
