// grid_sample, affine_grid, roi_align, non_max_suppression and col2im on values derived by hand, and on
// positions and regions that lie far outside.
#include "test/kernels/kernel_case.h"
#include <cmath>
#include <gmock/gmock.h>

namespace dspark::test {
namespace {

std::vector<float> values(const Tensor &t) { return {t.as<float>(), t.as<float>() + t.elements()}; }

Tensor sample(Tensor x, Tensor grid, const char *mode, const char *padding, int64_t alignCorners) {
  AttrList attrs;
  attrs.set("mode", mode).set("padding_mode", padding).set("align_corners", alignCorners);
  return runOp("grid_sample", {std::move(x), std::move(grid)}, attrs)[0];
}

TEST(GridSample, IdentityGridCopies) {
  std::mt19937 rng(1);
  Tensor x = uniform({2, 3, 4, 5}, rng), theta = floats({1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 1, 0}, {2, 2, 3});
  for (int64_t align : {0, 1}) {
    AttrList attrs;
    attrs.set("align_corners", align);
    Tensor grid = runOp("affine_grid", {theta, indices({2, 3, 4, 5})}, attrs)[0];
    ASSERT_EQ(grid.dims, (std::vector<int64_t>{2, 4, 5, 2}));
    for (const char *mode : {"nearest", "linear", "cubic"}) {
      Tensor y = sample(x, grid, mode, "border", align);
      for (int64_t i = 0; i < x.elements(); ++i) // a grid off by 1 ulp moves the position by 5 * 6e-8
        ASSERT_NEAR(y.as<float>()[i], x.as<float>()[i], 4 * 5 * 6e-8) << mode;
    }
  }
}

TEST(GridSample, PaddingModes) {
  // One row 10 20 30 with aligned corners: -1 -> 0, 0 -> 1, 1 -> 2, so 1.5 is position 2.5 and 3 is
  // position 4.
  Tensor x = floats({10, 20, 30}, {1, 1, 1, 3}), grid = floats({1.5, 0, 3, 0}, {1, 1, 2, 2});
  EXPECT_EQ(values(sample(x, grid, "linear", "zeros", 1)), (std::vector<float>{15, 0}));
  EXPECT_EQ(values(sample(x, grid, "linear", "border", 1)), (std::vector<float>{30, 30}));
  EXPECT_EQ(values(sample(x, grid, "linear", "reflection", 1)), (std::vector<float>{25, 10}));
}

TEST(GridSample, AbsurdPositionsStayInside) {
  Tensor x = floats({1, 2, 3, 4}, {1, 1, 2, 2}),
         grid = floats({NAN, 1e38f, -INFINITY, INFINITY}, {1, 1, 2, 2});
  for (const char *mode : {"nearest", "linear", "cubic"})
    for (const char *padding : {"zeros", "border", "reflection"})
      for (float y : values(sample(x, grid, mode, padding, 0)))
        EXPECT_TRUE(std::fabs(y) <= 8) << mode << " " << padding; // cubic may overshoot
}

Tensor align(Tensor roi, int64_t image, const char *mode, int64_t size) {
  Tensor x = floats({0, 1, 2, 3, 4, 5, 6, 7, 8}, {1, 1, 3, 3});
  AttrList attrs;
  attrs.set("mode", mode).set("output_height", size).set("output_width", size);
  return runOp("roi_align", {x, std::move(roi), indices({image})}, attrs)[0];
}

TEST(RoiAlign, AveragesBilinearSamples) {
  // A region that is the pixel grid: each cell's single sample sits on a pixel.
  EXPECT_EQ(values(align(floats({0, 0, 3, 3}, {1, 4}), 0, "avg", 3)),
            (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(values(align(floats({0, 0, 2, 2}, {1, 4}), 0, "avg", 1)), (std::vector<float>{2}));
  // The largest weighted corner of the sample on pixel (1, 1).
  EXPECT_EQ(values(align(floats({1, 1, 2, 2}, {1, 4}), 0, "max", 1)), (std::vector<float>{4}));
}

TEST(RoiAlign, AbsurdRegionsEnd) {
  for (const char *mode : {"avg", "max"}) {
    EXPECT_NEAR(values(align(floats({-1e30f, -1e30f, 1e30f, 1e30f}, {1, 4}), 0, mode, 2))[0], 0, 1e-6);
    EXPECT_EQ(values(align(floats({0, 0, 3, 3}, {1, 4}), 5, mode, 1))[0], 0); // no image 5
    EXPECT_EQ(values(align(floats({3, 3, 0, 0}, {1, 4}), 0, mode, 1))[0], 0); // inside out
  }
}

std::vector<int64_t> suppress(std::vector<float> boxes, std::vector<float> scores, int64_t most, float iou,
                              float score) {
  auto n = int64_t(scores.size());
  Tensor out = runOp("non_max_suppression", {floats(boxes, {1, n, 4}), floats(scores, {1, 1, n}), index(most),
                                             floats({iou}, {}), floats({score}, {})})[0];
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < out.dims[0]; ++i)
    kept.push_back(out.as<int64_t>()[i * 3 + 2]);
  return kept;
}

TEST(NonMaxSuppression, KeepsTheBestOfEachPlace) {
  // Boxes 0 and 1 overlap by 1/3, box 2 is elsewhere, box 3 equals box 2 and comes in the other diagonal.
  std::vector<float> boxes = {0, 0, 2, 1, 1, 0, 3, 1, 5, 5, 6, 6, 6, 6, 5, 5};
  EXPECT_EQ(suppress(boxes, {0.5, 0.9, 0.3, 0.3}, 9, 0.5, 0), (std::vector<int64_t>{1, 0, 2}));
  EXPECT_EQ(suppress(boxes, {0.5, 0.9, 0.3, 0.3}, 9, 0.25, 0), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(suppress(boxes, {0.5, 0.9, 0.3, 0.3}, 9, 0.5, 0.4f), (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(suppress(boxes, {0.5, 0.9, 0.3, 0.3}, 1, 0.5, 0), (std::vector<int64_t>{1}));
  EXPECT_EQ(suppress(boxes, {NAN, NAN, 0.3, NAN}, 9, 0.5, 0), (std::vector<int64_t>{2}));
  EXPECT_TRUE(suppress(boxes, {1, 1, 1, 1}, -5, 0.5, 0).empty());
}

TEST(NonMaxSuppression, WithoutALimitNothingIsKept) {
  Tensor out = runOp("non_max_suppression", {floats({0, 0, 1, 1}, {1, 1, 4}), floats({1}, {1, 1, 1})})[0];
  EXPECT_EQ(out.dims, (std::vector<int64_t>{0, 3}));
}

TEST(Col2Im, CountsHowOftenBlocksCoverAPixel) {
  // Blocks of 2x2 over 3x3 pixels with ones everywhere.
  Tensor ones = filled<float>(DType::F32, {1, 4, 4}, [] { return 1; });
  EXPECT_EQ(values(runOp("col2im", {ones, indices({3, 3}), indices({2, 2})})[0]),
            (std::vector<float>{1, 2, 1, 2, 4, 2, 1, 2, 1}));
  // Dilation 2 in five pixels along one axis: block elements 0 and 2, three positions.
  AttrList attrs;
  attrs.set("dilations", std::vector<int64_t>{2});
  Tensor numbered = floats({1, 2, 3, 10, 20, 30}, {1, 2, 3});
  EXPECT_EQ(values(runOp("col2im", {numbered, indices({5}), indices({2})}, attrs)[0]),
            (std::vector<float>{1, 2, 13, 20, 30}));
}

TEST(Col2Im, Refusals) {
  Tensor x = zeros(DType::F32, {1, 4, 4});
  EXPECT_THAT(refusal("col2im", {x, indices({3, 3}), indices({3, 1})}), testing::HasSubstr("multiple"));
  EXPECT_THAT(refusal("col2im", {x, indices({4, 3}), indices({2, 2})}), testing::HasSubstr("must be 6"));
  EXPECT_THAT(refusal("col2im", {x, indices({1, 1}), indices({2, 2})}), testing::HasSubstr("does not fit"));
}

} // namespace
} // namespace dspark::test
