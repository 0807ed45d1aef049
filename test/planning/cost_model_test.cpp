#include "planning/CostFit.h"
#include <gtest/gtest.h>
#include <random>

namespace dspark {
namespace {

CostModel machine() {
  CostModel model;
  model.threads = 2;
  model.levels = {{"L1", 32e3, 200e9, 400e9}, {"L2", 512e3, 100e9, 200e9}, {"memory", 1e18, 10e9, 15e9}};
  model.peaks["avx2"] = {90e9, 300e9};
  return model;
}

CostFeatures randomFeatures(std::mt19937 &rng) {
  auto draw = [&](double low, double high) {
    return std::exp(std::uniform_real_distribution<double>(std::log(low), std::log(high))(rng));
  };
  CostFeatures f;
  f.key = "matmul_f32_avx2";
  f.work = draw(1e4, 1e9);
  f.steps = f.work / draw(50, 200);
  f.starts = f.steps / draw(20, 2000);
  f.moved = draw(1e3, 1e7);
  f.constant = draw(1e3, 1e7);
  f.parts = std::floor(draw(1, 100));
  return f;
}

TEST(CostModel, WithoutTermsIsTheRoofline) {
  CostFeatures f;
  f.key = "conv_f32_avx2";
  f.work = 9e9;
  CostModel model = machine();
  EXPECT_NEAR(model.predict(f, 0, 1), model.launch + 0.2, 1e-9); // half of 90 GFLOP/s
  f.work = 0;
  f.moved = 10e9;
  EXPECT_NEAR(model.predict(f, 0, 1), model.launch + 1, 1e-4); // 10 GB/s, but for what caches hold
}

TEST(CostModel, LevelsHoldAsMuchOfTheFootprintAsFits) {
  CostModel model = machine();
  EXPECT_DOUBLE_EQ(model.readSeconds(1e3, 20e3, 1), 1e3 / 200e9);
  EXPECT_DOUBLE_EQ(model.readSeconds(1e3, 64e3, 1), 500 / 200e9 + 500 / 100e9);
  EXPECT_DOUBLE_EQ(model.readSeconds(1e3, 64e3, 2), 500 / 400e9 + 500 / 200e9);
  EXPECT_NEAR(model.readSeconds(1e3, 1e9, 1), 1e3 / 10e9, 1e-3 * 1e3 / 10e9);
  EXPECT_NEAR(model.readSeconds(1e3, 1e9, 2), 1e3 / 15e9, 1e-3 * 1e3 / 15e9);
  for (double footprint = 1e3; footprint < 1e9; footprint *= 1.1)
    EXPECT_LE(model.readSeconds(1e3, footprint, 1), model.readSeconds(1e3, footprint * 1.1, 1));
}

TEST(CostModel, GrowsWithEveryFeatureAndShrinksWithThreads) {
  std::mt19937 rng(3);
  CostModel model = machine();
  for (bool hasTerms : {false, true}) {
    if (hasTerms)
      model.kernels["matmul_f32_avx2"] = {1e-11, 1e-10, 1e-9, 1e-8, 1.5, 1.2, 1e-7};
    for (int i = 0; i < 200; ++i) {
      CostFeatures f = randomFeatures(rng);
      double one = model.predict(f, 1e6, 1);
      EXPECT_GT(one, 0);
      EXPECT_LE(model.predict(f, 1e6, 2), one);
      for (double CostFeatures::*feature :
           {&CostFeatures::work, &CostFeatures::heavy, &CostFeatures::steps, &CostFeatures::starts,
            &CostFeatures::moved, &CostFeatures::constant}) {
        CostFeatures more = f;
        more.*feature = more.*feature * 3 + 100;
        EXPECT_GE(model.predict(more, 1e6, 1), one);
      }
    }
  }
}

TEST(CostModel, LevelsWithoutTermsTakeThoseOfTheLevelBelow) {
  CostModel model = machine();
  model.kernels["conv_f32_avx2"] = {1, 0, 0, 0, 0, 0, 0};
  model.kernels["matmul_packed/q8_0/int8"] = {2, 0, 0, 0, 0, 0, 0};
  ASSERT_NE(model.termsOf("conv_f32_avx512"), nullptr);
  EXPECT_EQ((*model.termsOf("conv_f32_avx512"))[0], 1);
  EXPECT_EQ((*model.termsOf("matmul_packed_avx512/q8_0/int8"))[0], 2);
  EXPECT_EQ((*model.termsOf("conv_f32_amx"))[0], 1);
  EXPECT_EQ(model.termsOf("matmul_packed_avx512/q4_0/int8"), nullptr);
  EXPECT_EQ(model.termsOf("conv_f32"), nullptr);            // never those of a higher level
  EXPECT_EQ((*model.termsOf("conv_f32_avx512/3s1"))[0], 1); // a variant without terms takes its kernel's
}

// Samples made by known terms, with 3 % of noise: other calls of the same kernel are predicted within 10 %.
TEST(CostFit, PredictsCallsThatWereNotFitted) {
  std::mt19937 rng(4);
  CostModel truth = machine();
  truth.kernels["matmul_f32_avx2"] = {1.3e-11, 0, 4e-10, 2e-8, 1.4, 1.1, 3e-7};
  std::normal_distribution<double> noise(0, 0.03);
  std::vector<CostSample> samples;
  for (int i = 0; i < 60; ++i) {
    CostFeatures f = randomFeatures(rng);
    samples.push_back({f, 5e6, truth.predict(f, 5e6, 1) * (1 + std::fabs(noise(rng)))});
  }
  CostModel model = machine();
  FitReport report = fitCosts(model, samples);
  EXPECT_EQ(report.samples, 60u);
  EXPECT_LT(report.median, 0.04);
  EXPECT_GT(report.r2, 0.99);
  for (int i = 0; i < 60; ++i) {
    CostFeatures f = randomFeatures(rng);
    double expected = truth.predict(f, 5e6, 1);
    EXPECT_NEAR(model.predict(f, 5e6, 1), expected, 0.1 * expected);
  }
}

// One sample must not send terms that it does not determine to absurd values.
TEST(CostFit, OneSampleStaysNearThePrior) {
  CostModel model = machine();
  CostFeatures f;
  f.key = "conv_f32_avx2";
  f.work = 1e6;
  f.moved = 1e4;
  std::vector<CostSample> samples = {{f, 0, 30e-6}};
  fitCosts(model, samples);
  EXPECT_NEAR(model.predict(f, 0, 1), 30e-6, 2e-6);
  f.work = 1e9;
  double roofline = machine().predict(f, 0, 1);
  EXPECT_GT(model.predict(f, 0, 1), roofline / 4);
  EXPECT_LT(model.predict(f, 0, 1), roofline * 4);
}

TEST(CostFit, Accuracy) {
  std::vector<double> predicted = {1, 2, 3, 4, 50}, measured = {1, 2, 4, 5, 10};
  Accuracy a = accuracyOf(predicted, measured);
  EXPECT_DOUBLE_EQ(a.median, 0.2);
  EXPECT_DOUBLE_EQ(a.worst, 4);
  EXPECT_DOUBLE_EQ(a.rank, 1);
  EXPECT_EQ(accuracyOf({}, {}).median, 0);
}

} // namespace
} // namespace dspark
