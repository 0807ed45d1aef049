// dft and stft against the defining sums in double for lengths of every kind (powers of two, primes, one),
// and their inverses; windows and mel weights on their defining properties.
#include "test/kernels/kernel_case.h"
#include <cmath>
#include <complex>
#include <gmock/gmock.h>
#include <numbers>

namespace dspark::test {
namespace {

using Line = std::vector<std::complex<double>>;

Line direct(const Line &x, bool inverse) {
  auto n = x.size();
  Line y(n);
  for (size_t k = 0; k < n; ++k) {
    for (size_t i = 0; i < n; ++i)
      y[k] += x[i] * std::polar(1.0, (inverse ? 2 : -2) * std::numbers::pi * double(k * i % n) / double(n));
    y[k] /= inverse ? double(n) : 1;
  }
  return y;
}

AttrList flags(int64_t inverse, int64_t oneSided) {
  AttrList attrs;
  attrs.set("inverse", inverse).set("onesided", oneSided);
  return attrs;
}

TEST(Dft, MatchesTheSumForEveryKindOfLength) {
  std::mt19937 rng(1);
  for (int64_t n : {1, 2, 3, 4, 7, 8, 12, 31, 64, 100})
    for (int64_t inverse : {0, 1}) {
      Tensor x = uniform({2, n, 3, 2}, rng);
      Tensor y = runOp("dft", {x, {}, index(1)}, flags(inverse, 0))[0];
      ASSERT_EQ(y.dims, x.dims);
      for (int64_t outer = 0; outer < 2; ++outer)
        for (int64_t inner = 0; inner < 3; ++inner) {
          auto at = [&](const Tensor &t, int64_t k) {
            const float *p = t.as<float>() + ((outer * n + k) * 3 + inner) * 2;
            return std::complex<double>(p[0], p[1]);
          };
          Line line;
          for (int64_t k = 0; k < n; ++k)
            line.push_back(at(x, k));
          Line want = direct(line, inverse != 0);
          for (int64_t k = 0; k < n; ++k) // the transform is in double; only the result is rounded
            ASSERT_NEAR(std::abs(at(y, k) - want[size_t(k)]), 0, 1e-12 + 1e-7 * std::abs(want[size_t(k)]))
                << n;
        }
    }
}

TEST(Dft, OneSidedIsTheHalfAndComesBack) {
  std::mt19937 rng(2);
  for (int64_t n : {6, 7, 16}) {
    Tensor x = uniform({2, n, 1}, rng);
    Tensor half = runOp("dft", {x}, flags(0, 1))[0], full = runOp("dft", {x}, flags(0, 0))[0];
    ASSERT_EQ(half.dims, (std::vector<int64_t>{2, n / 2 + 1, 2}));
    for (int64_t row = 0; row < 2; ++row)
      for (int64_t k = 0; k < (n / 2 + 1) * 2; ++k)
        ASSERT_EQ(half.as<float>()[row * (n / 2 + 1) * 2 + k], full.as<float>()[row * n * 2 + k]);
    Tensor back = runOp("dft", {half, index(n)}, flags(1, 1))[0];
    ASSERT_EQ(back.dims, x.dims);
    for (int64_t i = 0; i < x.elements(); ++i) // the spectrum was rounded to f32
      ASSERT_NEAR(back.as<float>()[i], x.as<float>()[i], double(n) * 1.2e-7);
  }
}

TEST(Dft, LengthPadsOrCuts) {
  Tensor x = floats({1, 2, 3}, {1, 3, 1});
  EXPECT_EQ(runOp("dft", {x, index(2)})[0].as<float>()[0], 3);
  EXPECT_EQ(runOp("dft", {x, index(5)})[0].as<float>()[0], 6);
}

TEST(Dft, Refusals) {
  Tensor x = zeros(DType::F32, {1, 3, 1});
  EXPECT_THAT(refusal("dft", {x, {}, index(2)}), testing::HasSubstr("axis must not be the last"));
  EXPECT_THAT(refusal("dft", {x, index(0)}), testing::HasSubstr("dft_length"));
  EXPECT_THAT(refusal("dft", {zeros(DType::F32, {1, 3, 3})}), testing::HasSubstr("real"));
}

TEST(Stft, FramesAreWindowedTransforms) {
  std::mt19937 rng(3);
  Tensor x = uniform({2, 20, 1}, rng), window = uniform({6}, rng);
  Tensor y = runOp("stft", {x, index(4), window})[0];
  ASSERT_EQ(y.dims, (std::vector<int64_t>{2, 4, 4, 2}));
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t frame = 0; frame < 4; ++frame) {
      Line line;
      for (int64_t i = 0; i < 6; ++i)
        line.push_back(double(x.as<float>()[b * 20 + frame * 4 + i]) * double(window.as<float>()[i]));
      Line want = direct(line, false);
      for (int64_t k = 0; k < 4; ++k) {
        const float *p = y.as<float>() + ((b * 4 + frame) * 4 + k) * 2;
        ASSERT_NEAR(std::abs(std::complex<double>(p[0], p[1]) - want[size_t(k)]), 0, 6e-7);
      }
    }
  Tensor flat = x;
  flat.dims = {2, 20};
  EXPECT_EQ(runOp("stft", {flat, index(4), window})[0].bytes, y.bytes);
  EXPECT_THAT(refusal("stft", {x, index(4), {}, index(21)}), testing::HasSubstr("at least 21 samples"));
}

TEST(Windows, PeriodicIsTheSymmetricOneOfOneMore) {
  AttrList symmetric;
  symmetric.set("periodic", int64_t(0));
  for (const char *op : {"hann_window", "hamming_window", "blackman_window"}) {
    Tensor a = runOp(op, {index(9)})[0], b = runOp(op, {index(10)}, symmetric)[0];
    for (int64_t i = 0; i < 9; ++i)
      ASSERT_EQ(a.as<float>()[i], b.as<float>()[i]) << op;
    EXPECT_EQ(b.as<float>()[0], b.as<float>()[9]) << op;
    EXPECT_EQ(runOp(op, {index(1)}, symmetric)[0].as<float>()[0], 1) << op; // one point: the peak
  }
  EXPECT_NEAR(runOp("hann_window", {index(4)})[0].as<float>()[1], 0.5, 1e-7);
}

TEST(MelWeights, TrianglesPeakAtOne) {
  Tensor y =
      runOp("mel_weight_matrix", {index(4), index(64), index(8000), floats({0}, {}), floats({4000}, {})})[0];
  ASSERT_EQ(y.dims, (std::vector<int64_t>{33, 4}));
  for (int64_t mel = 0; mel < 4; ++mel) {
    float top = 0;
    for (int64_t bin = 0; bin < 33; ++bin)
      top = std::max(top, y.as<float>()[bin * 4 + mel]);
    EXPECT_EQ(top, 1);
  }
}

} // namespace
} // namespace dspark::test
