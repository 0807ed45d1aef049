// Class losses against their definition in double, over reductions, weights and ignored labels; optimiser
// steps on values derived by hand.
#include "test/kernels/kernel_case.h"
#include <cmath>
#include <gmock/gmock.h>

namespace dspark::test {
namespace {

constexpr int64_t kBatch = 700, kClasses = 5, kInner = 3; // more than one block of samples

struct Case {
  Tensor scores, labels, weights;
};
Case draw(std::mt19937 &rng) {
  std::uniform_int_distribution<int64_t> label(0, kClasses); // kClasses itself is outside
  return {uniform({kBatch, kClasses, kInner}, rng),
          filled<int64_t>(DType::I64, {kBatch, kInner}, [&] { return label(rng); }),
          uniform({kClasses}, rng)};
}

struct Loss {
  double sum = 0, weight = 0;
};
Loss expected(Case &c, bool softmax, int64_t ignored, bool weighted) {
  Loss loss;
  for (int64_t n = 0; n < kBatch; ++n)
    for (int64_t i = 0; i < kInner; ++i) {
      const float *x = c.scores.as<float>() + n * kClasses * kInner + i;
      int64_t label = c.labels.as<int64_t>()[n * kInner + i];
      if (label == ignored || label >= kClasses)
        continue;
      double total = 0, weight = weighted ? double(c.weights.as<float>()[label]) : 1;
      for (int64_t k = 0; k < kClasses; ++k)
        total += std::exp(double(x[k * kInner]));
      loss.sum += weight * ((softmax ? std::log(total) : 0) - double(x[label * kInner]));
      loss.weight += weight;
    }
  return loss;
}

TEST(ClassLoss, MatchesTheDefinition) {
  std::mt19937 rng(1);
  Case c = draw(rng);
  for (bool softmax : {false, true})
    for (bool weighted : {false, true})
      for (int64_t ignored : {int64_t(-1), int64_t(2)}) {
        Loss want = expected(c, softmax, ignored, weighted);
        for (const char *reduction : {"sum", "mean"}) {
          AttrList attrs;
          attrs.set("reduction", reduction).set("ignore_index", ignored);
          const char *op = softmax ? "softmax_cross_entropy_loss" : "negative_log_likelihood_loss";
          std::vector<Tensor> in = {c.scores, c.labels};
          if (weighted)
            in.push_back(c.weights);
          Tensor out = runOp(op, in, attrs)[0];
          double value = reduction[0] == 's' ? want.sum : want.sum / want.weight;
          // Sums are in double; the result is rounded once.
          EXPECT_NEAR(out.as<float>()[0], value, std::fabs(value) * 1.2e-7) << op << " " << reduction;
          EXPECT_EQ(out.bytes, runOp(op, in, attrs, 1, 1)[0].bytes);
        }
      }
}

TEST(ClassLoss, NoneGivesEachSampleAndLogProbabilities) {
  AttrList attrs;
  attrs.set("reduction", "none");
  std::vector<Tensor> out =
      runOp("softmax_cross_entropy_loss", {floats({0, 0, 1000, 0}, {2, 2}), indices({1, 0})}, attrs, 2);
  EXPECT_THAT(std::vector<float>(out[0].as<float>(), out[0].as<float>() + 2),
              testing::ElementsAre(std::log(2.0f), 0));
  EXPECT_THAT(std::vector<float>(out[1].as<float>(), out[1].as<float>() + 4),
              testing::ElementsAre(-std::log(2.0f), -std::log(2.0f), 0, -1000));
}

TEST(ClassLoss, Refusals) {
  Tensor x = zeros(DType::F32, {2, 3});
  EXPECT_THAT(refusal("negative_log_likelihood_loss", {x, indices({1, 1, 1})}),
              testing::HasSubstr("must be 2"));
  EXPECT_THAT(refusal("negative_log_likelihood_loss", {x, indices({1, 1}), floats({1, 1}, {2})}),
              testing::HasSubstr("must be 3"));
}

std::vector<float> step(const char *op, std::vector<Tensor> in, const AttrList &attrs, size_t results) {
  std::vector<float> values;
  for (const Tensor &t : runOp(op, std::move(in), attrs, results))
    values.insert(values.end(), t.as<float>(), t.as<float>() + t.elements());
  return values;
}
Tensor one(float value) { return floats({value}, {1}); }

TEST(Optimiser, Momentum) {
  AttrList attrs;
  attrs.setFloat("alpha", 0.5).setFloat("beta", 0.25).setFloat("norm_coefficient", 1).set("mode", "standard");
  // Two tensors: gradients 3 + 1*1 = 4 and 2 + 1*2 = 4; the first step takes the gradient whole.
  EXPECT_THAT(step("momentum", {floats({0.5}, {}), index(0), one(1), one(2), one(3), one(2), one(8), one(0)},
                   attrs, 4),
              testing::ElementsAre(1 - 0.5 * 8, 2 - 0.5 * 4, 8, 4));
  EXPECT_THAT(step("momentum", {floats({0.5}, {}), index(1), one(1), one(3), one(8)}, attrs, 2),
              testing::ElementsAre(1 - 0.5 * 5, 5));
  AttrList nesterov;
  nesterov.setFloat("alpha", 0.5)
      .setFloat("beta", 0.25)
      .setFloat("norm_coefficient", 1)
      .set("mode", "nesterov");
  EXPECT_THAT(step("momentum", {floats({0.5}, {}), index(1), one(1), one(3), one(8)}, nesterov, 2),
              testing::ElementsAre(1 - 0.5 * (4 + 0.5 * 5), 5));
}

TEST(Optimiser, Adagrad) {
  AttrList attrs;
  attrs.setFloat("decay_factor", 0.5).setFloat("epsilon", 1);
  // Rate 1 / (1 + 2 * 0.5) = 0.5; H = 7 + 3*3 = 16.
  EXPECT_THAT(step("adagrad", {floats({1}, {}), index(2), one(1), one(3), one(7)}, attrs, 2),
              testing::ElementsAre(testing::FloatEq(1 - 0.5f * 3 / 5), 16));
}

TEST(Optimiser, Adam) {
  AttrList attrs;
  attrs.setFloat("alpha", 0.5)
      .setFloat("beta", 0.75)
      .setFloat("epsilon", 1)
      .setFloat("norm_coefficient_post", 0.5);
  // V = 0.5*2 + 0.5*4 = 3; H = 0.75*0 + 0.25*16 = 4; rate 1 * sqrt(1 - 0.75) / (1 - 0.5) = 1.
  EXPECT_THAT(step("adam", {floats({1}, {}), index(1), one(5), one(4), one(2), one(0)}, attrs, 3),
              testing::ElementsAre(testing::FloatEq(0.5f * (5 - 3.0f / 3)), 3, 4));
}

TEST(Optimiser, Refusals) {
  EXPECT_THAT(refusal("adam", {floats({1}, {}), index(1), one(1), one(1), one(1)}, {}, 2),
              testing::HasSubstr("operands"));
  EXPECT_THAT(refusal("adagrad", {floats({1}, {}), index(1), one(1), floats({1, 1}, {2}), one(1)}, {}, 2),
              testing::HasSubstr("must be 1"));
}

} // namespace
} // namespace dspark::test
