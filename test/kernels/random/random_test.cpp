// The generator against the published vectors of Philox 4x32-10, and the moments of what the operators draw.
// Seeds are fixed, so nothing here can fail by chance; the bounds are five standard errors.
#include "kernels/random/random.h"
#include "test/kernels/kernel_case.h"
#include <cmath>
#include <gmock/gmock.h>

namespace dspark::test {
namespace {

constexpr int64_t kCount = 100000;

struct Moments {
  double mean = 0, variance = 0;
};
Moments momentsOf(const Tensor &t) {
  Moments m;
  for (int64_t i = 0; i < t.elements(); ++i)
    m.mean += t.as<float>()[i] / double(t.elements());
  for (int64_t i = 0; i < t.elements(); ++i)
    m.variance += std::pow(t.as<float>()[i] - m.mean, 2) / double(t.elements());
  return m;
}
AttrList shaped(double seed) {
  AttrList attrs;
  attrs.set("shape", std::vector<int64_t>{kCount}).setFloat("seed", seed);
  return attrs;
}

TEST(Philox, PublishedVectors) {
  // Random123's kat_vectors, counter 0 0 0 0 and key 0 0.
  Philox generator{Attrs()};
  ASSERT_EQ(generator.key, 0u);
  uint32_t words[4];
  generator.block(0, words);
  EXPECT_THAT(words, testing::ElementsAre(0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u));
}

TEST(Random, UniformMoments) {
  AttrList attrs = shaped(1);
  attrs.setFloat("low", -2).setFloat("high", 4);
  Tensor x = runOp("random_uniform", {}, attrs)[0];
  Moments m = momentsOf(x);
  EXPECT_NEAR(m.mean, 1, 5 * std::sqrt(3.0 / kCount));
  EXPECT_NEAR(m.variance, 3, 5 * std::sqrt(7.2 / kCount)); // var((x - mean)^2) = 6^4 / 180
  for (int64_t i = 0; i < kCount; ++i)
    ASSERT_TRUE(x.as<float>()[i] >= -2 && x.as<float>()[i] <= 4);
}

TEST(Random, NormalMoments) {
  AttrList attrs = shaped(1);
  attrs.setFloat("mean", 3).setFloat("scale", 2);
  Moments m = momentsOf(runOp("random_normal", {}, attrs)[0]);
  EXPECT_NEAR(m.mean, 3, 5 * 2 / std::sqrt(double(kCount)));
  EXPECT_NEAR(m.variance, 4, 5 * std::sqrt(32.0 / kCount)); // var((x - mean)^2) = 2 * 4^2
}

TEST(Random, SeedsDecide) {
  auto draw = [](double seed, int threads) {
    return runOp("random_uniform", {}, shaped(seed), 1, threads)[0].bytes;
  };
  EXPECT_EQ(draw(7, 1), draw(7, 3));
  EXPECT_NE(draw(7, 1), draw(8, 1));
}

TEST(Random, BernoulliFollowsItsProbabilities) {
  Tensor p = filled<float>(DType::F32, {kCount}, [i = 0]() mutable { return float(i++ % 2 ? 0.25 : 1); });
  AttrList attrs;
  attrs.set("dtype", int64_t(DType::Bool));
  Tensor y = runOp("bernoulli", {p}, attrs)[0];
  int64_t ones = 0;
  for (int64_t i = 0; i < kCount; ++i) {
    ones += i % 2 ? y.as<uint8_t>()[i] : 0;
    ASSERT_TRUE(i % 2 || y.as<uint8_t>()[i] == 1);
  }
  EXPECT_NEAR(double(ones), kCount / 2 * 0.25, 5 * std::sqrt(kCount / 2 * 0.25 * 0.75));
}

TEST(Random, MultinomialFollowsItsLogits) {
  AttrList attrs;
  attrs.set("sample_size", kCount).set("dtype", int64_t(DType::I64));
  Tensor y = runOp("multinomial", {floats({std::log(1.0f), std::log(3.0f), -INFINITY}, {1, 3})}, attrs)[0];
  int64_t counts[3] = {};
  for (int64_t i = 0; i < kCount; ++i)
    ++counts[y.as<int64_t>()[i]];
  EXPECT_NEAR(double(counts[1]), kCount * 0.75, 5 * std::sqrt(kCount * 0.75 * 0.25));
  EXPECT_EQ(counts[2], 0);
}

TEST(Dropout, TrainingScalesWhatItKeeps) {
  Tensor x = filled<float>(DType::F32, {kCount}, [] { return 3; }), training = zeros(DType::Bool, {});
  training.as<uint8_t>()[0] = 1;
  std::vector<Tensor> out = runOp("dropout", {x, floats({0.25}, {}), training}, {}, 2);
  int64_t kept = 0;
  for (int64_t i = 0; i < kCount; ++i) {
    kept += out[1].as<uint8_t>()[i];
    ASSERT_EQ(out[0].as<float>()[i], out[1].as<uint8_t>()[i] ? 4 : 0);
  }
  EXPECT_NEAR(double(kept), kCount * 0.75, 5 * std::sqrt(kCount * 0.75 * 0.25));
}

TEST(Dropout, InferenceIsTheIdentity) {
  std::mt19937 rng(1);
  Tensor x = uniform({50}, rng);
  std::vector<Tensor> out = runOp("dropout", {x}, {}, 2);
  EXPECT_EQ(out[0].bytes, x.bytes);
  EXPECT_EQ(out[1].bytes, std::vector<std::byte>(50, std::byte(1)));
}

TEST(Random, Refusals) {
  AttrList negative, type;
  negative.set("shape", std::vector<int64_t>{2, -1});
  type.set("shape", std::vector<int64_t>{2}).set("dtype", int64_t(DType::I32));
  EXPECT_THAT(refusal("random_uniform", {}, negative), testing::HasSubstr("negative"));
  EXPECT_THAT(refusal("random_uniform", {}, type), testing::HasSubstr("dtype"));
  EXPECT_THAT(refusal("multinomial", {zeros(DType::F32, {2, 0})}), testing::HasSubstr("class"));
}

} // namespace
} // namespace dspark::test
