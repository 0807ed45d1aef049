// conv's Winograd rows. Their error is bounded by the magnitudes inside the transform, not by sum|x w|: with
// the absolute values of winograd.h's matrices, each output lies within (I + 28) eps of the exact sum, times
// M = |At| [(|G||g||Gt|) * (|Bt||d||B|)] |A| summed over the I input channels. 28 are the roundings on the
// way: per pass 4 in the input's and the filter's transform and 5 in the output's, constants' errors
// included, two passes each, and two for bias and residual.
#include "test/kernels/conv/winograd_case.h"
#include <array>

namespace dspark {
namespace {

using namespace test;

constexpr double kEps = 1.0 / (1 << 24);
const double kA = std::sqrt(0.5), kB = std::sqrt(2.0);
const double kInput[6][6] = {{1, 0, -2.5, 0, 1, 0},        {0, -2 * kA, -2, kA, 1, 0},
                             {0, 2 * kA, -2, -kA, 1, 0},   {0, -kB / 2, -0.5, kB, 1, 0},
                             {0, kB / 2, -0.5, -kB, 1, 0}, {0, 1, 0, -2.5, 0, 1}};
const double kFilter[6][3] = {{1, 0, 0},
                              {-2.0 / 3, -2 * kA / 3, -1.0 / 3},
                              {-2.0 / 3, 2 * kA / 3, -1.0 / 3},
                              {1.0 / 6, kB / 6, 1.0 / 3},
                              {1.0 / 6, -kB / 6, 1.0 / 3},
                              {0, 0, 1}};
const double kOutput[4][6] = {{1, 1, 1, 1, 1, 0},
                              {0, kA, -kA, kB, -kB, 0},
                              {0, 0.5, 0.5, 2, 2, 0},
                              {0, kA / 2, -kA / 2, 2 * kB, -2 * kB, 1}};

using Case = ImageCase;

// x[n, y, x, c], zero outside.
double at(const Case &c, const Tensor &x, int64_t n, int64_t row, int64_t column, int64_t channel) {
  if (row < 0 || row >= c.height || column < 0 || column >= c.width)
    return 0;
  return double(x.as<float>()[((n * c.height + row) * c.width + column) * c.inputs + channel]);
}

struct Expected {
  double value = 0, magnitude = 0;
};

// The 4 x 4 outputs of the tile at (row, column), of one output channel.
std::array<Expected, 16> tileOf(const Case &c, const Tensor &x, const Tensor &w, int64_t n, int64_t row,
                                int64_t column, int64_t o) {
  std::array<Expected, 16> out;
  for (int64_t i = 0; i < c.inputs; ++i) {
    const float *g = w.as<float>() + (o * c.inputs + i) * 9;
    double d[6][6], product[6][6];
    for (int r = 0; r < 6; ++r)
      for (int q = 0; q < 6; ++q)
        d[r][q] = at(c, x, n, row - c.pads[0] + r, column - c.pads[1] + q, i);
    double input[6][6] = {}, filter[6][6] = {}; // |Bt||d| and |G||g|
    for (int r = 0; r < 6; ++r)
      for (int k = 0; k < 6; ++k) {
        for (int q = 0; q < 6; ++q)
          input[r][q] += std::fabs(kInput[r][k] * d[k][q]);
        for (int q = 0; q < 3 && k < 3; ++q)
          filter[r][q] += std::fabs(kFilter[r][k] * double(g[k * 3 + q]));
      }
    for (int r = 0; r < 6; ++r)
      for (int q = 0; q < 6; ++q) {
        double left = 0, right = 0;
        for (int l = 0; l < 6; ++l)
          left += input[r][l] * std::fabs(kInput[q][l]);
        for (int l = 0; l < 3; ++l)
          right += filter[r][l] * std::fabs(kFilter[q][l]);
        product[r][q] = left * right;
      }
    for (int r = 0; r < 4; ++r)
      for (int q = 0; q < 4; ++q) {
        Expected &e = out[size_t(r * 4 + q)];
        for (int k = 0; k < 3; ++k)
          for (int l = 0; l < 3; ++l)
            e.value += d[r + k][q + l] * double(g[k * 3 + l]);
        for (int k = 0; k < 6; ++k)
          for (int l = 0; l < 6; ++l)
            e.magnitude += std::fabs(kOutput[r][k] * kOutput[q][l]) * product[k][l];
      }
  }
  return out;
}

Tensor packed(const Tensor &w) { return packedFilters("panel16", w); }
AttrList attrsOf(const Case &c) { return c.attrs("panel16"); }
std::vector<const Kernel *> winogradRows() { return rowsNamed("conv", "winograd", "winograd_line"); }

// Draws operands, runs every row and compares each output.
void check(const Case &c, bool hasBias, bool hasResidual) {
  std::mt19937 rng(11);
  Tensor w = uniform({c.outputs, c.inputs, 3, 3}, rng);
  std::vector<Tensor> in(4);
  in[0] = uniform({c.batch, c.height, c.width, c.inputs}, rng);
  in[1] = packed(w);
  if (hasBias)
    in[2] = uniform({c.outputs}, rng);
  if (hasResidual)
    in[3] = uniform({c.batch, c.outHeight(), c.outWidth(), c.outputs}, rng);
  AttrList attrs = attrsOf(c);
  attrs.set("activation", "relu");
  std::vector<Tensor> results;
  for (const Kernel *row : winogradRows())
    results.push_back(runRow(*row, in, attrs)[0]);
  for (int64_t n = 0; n < c.batch; ++n)
    for (int64_t row = 0; row < c.outHeight(); row += 4)
      for (int64_t column = 0; column < c.outWidth(); column += 4)
        for (int64_t o = 0; o < c.outputs; ++o) {
          std::array<Expected, 16> tile = tileOf(c, in[0], w, n, row, column, o);
          for (int64_t i = 0; i < 16; ++i) {
            int64_t r = row + i / 4, q = column + i % 4;
            if (r >= c.outHeight() || q >= c.outWidth())
              continue;
            int64_t index = ((n * c.outHeight() + r) * c.outWidth() + q) * c.outputs + o;
            double want = tile[size_t(i)].value + (hasBias ? double(in[2].as<float>()[o]) : 0) +
                          (hasResidual ? double(in[3].as<float>()[index]) : 0);
            double bound = double(c.inputs + 28) * kEps * (tile[size_t(i)].magnitude + std::fabs(want));
            for (const Tensor &y : results)
              ASSERT_NEAR(double(y.as<float>()[index]), std::max(want, 0.0), bound)
                  << "image " << n << " output " << r << ", " << q << " channel " << o;
          }
        }
}

TEST(ConvWinograd, Sums) {
  check({1, 12, 8, 40, 40}, true, true);
  check({2, 11, 16, 40, 37}, true, false);
  check({1, 15, 13, 33, 48, {0, 1, 2, 0}}, false, true);
  check({1, 14, 6, 64, 37, {2, 2, 2, 2}}, false, false);
  check({3, 10, 18, 65, 33, {0, 0, 0, 0}}, true, true);
  check({1, 16, 24, 300, 40}, true, false);
  check({1, 50, 70, 18, 35}, true, false); // filters first
}

// The usual error, not the bound: winograd.h promises about twice that of the direct sum; three times leaves
// room for the draw.
TEST(ConvWinograd, ErrorIsThatOfTheDirectSum) {
  std::mt19937 rng(5);
  Case c{1, 20, 20, 64, 32};
  Tensor w = uniform({c.outputs, c.inputs, 3, 3}, rng);
  std::vector<Tensor> in = {uniform({1, c.height, c.width, c.inputs}, rng), packed(w)};
  std::vector<double> exact;
  for (int64_t i = 0; i < c.height * c.width * c.outputs; ++i) {
    int64_t o = i % c.outputs, q = i / c.outputs % c.width, r = i / c.outputs / c.width;
    double sum = 0;
    for (int64_t k = 0; k < 9 * c.inputs; ++k)
      sum += at(c, in[0], 0, r - 1 + k / 3 % 3, q - 1 + k % 3, k / 9) *
             double(w.as<float>()[o * 9 * c.inputs + k]);
    exact.push_back(sum);
  }
  expectErrorOfDirectSum(winogradRows(), in, attrsOf(c), exact, 3);
}

TEST(ConvWinograd, BitsDoNotDependOnBatchOrThreads) {
  std::mt19937 rng(3);
  Case c{9, 17, 30, 48, 50};
  std::vector<Tensor> in = {uniform({c.batch, c.height, c.width, c.inputs}, rng),
                            packed(uniform({c.outputs, c.inputs, 3, 3}, rng))};
  expectBitsOfFirstImage(winogradRows(), in, attrsOf(c));
}

// A NaN reaches every output that reads it, and none outside its tiles.
TEST(ConvWinograd, NaNStaysInItsTiles) {
  std::mt19937 rng(3);
  Case c{1, 16, 16, 16, 16};
  std::vector<Tensor> in = {uniform({1, c.height, c.width, c.inputs}, rng),
                            packed(uniform({c.outputs, c.inputs, 3, 3}, rng))};
  in[0].as<float>()[(5 * c.width + 6) * c.inputs + 3] = NAN;
  for (const Kernel *row : winogradRows()) {
    Tensor y = runRow(*row, in, attrsOf(c))[0];
    for (int64_t i = 0; i < y.elements(); ++i) {
      int64_t q = i / c.outputs % c.width, r = i / c.outputs / c.width;
      bool reads = std::abs(r - 5) <= 1 && std::abs(q - 6) <= 1, sharesTile = r / 4 == 1 && q / 4 == 1;
      if (reads)
        EXPECT_TRUE(std::isnan(y.as<float>()[i])) << row->name;
      else if (!sharesTile)
        EXPECT_FALSE(std::isnan(y.as<float>()[i])) << row->name << " " << r << ", " << q;
    }
  }
}

TEST(ConvWinograd, TakesOnlyWhatItIsCheaperFor) {
  auto chosen = [](const Case &c, std::vector<int64_t> strides) {
    std::mt19937 rng(1);
    std::vector<Tensor> in = {zeros(DType::F32, {c.batch, c.height, c.width, c.inputs}),
                              packed(zeros(DType::F32, {c.outputs, c.inputs, 3, 3}))};
    AttrList attrs = attrsOf(c);
    attrs.set("strides", std::move(strides));
    std::vector<Tensor> out = inferResults("conv", in, attrs, 1);
    std::vector<TensorView> inViews = {in[0].view(), in[1].view()}, outViews = {out[0].view()};
    KernelCall call;
    call.in = inViews;
    call.out = outViews;
    call.attrs = attrs.view();
    return std::string_view(selectKernel("conv", call, Isa::Baseline)->name);
  };
  EXPECT_EQ(chosen({1, 56, 56, 64, 64}, {1, 1}), "conv_f32_winograd");
  EXPECT_EQ(chosen({1, 56, 56, 64, 64}, {2, 2}), "conv_f32");
  EXPECT_EQ(chosen({1, 56, 56, 3, 64}, {1, 1}), "conv_f32");
  // Few tiles do not pay for the filters' transform; the choice does not depend on the batch.
  EXPECT_EQ(chosen({1, 7, 7, 512, 512}, {1, 1}), "conv_f32");
  EXPECT_EQ(chosen({8, 7, 7, 512, 512}, {1, 1}), "conv_f32");
}

} // namespace
} // namespace dspark
