// det, binarizer, label_encoder, tf_idf_vectorizer and tree_ensemble on values derived by hand, and on
// attributes that lie.
#include "test/kernels/kernel_case.h"
#include <cmath>
#include <gmock/gmock.h>

namespace dspark::test {
namespace {

std::vector<float> values(const Tensor &t) { return {t.as<float>(), t.as<float>() + t.elements()}; }

TEST(Inverse, TimesItsMatrixIsTheIdentity) {
  std::mt19937 rng(5);
  Tensor x = uniform({3, 7, 7}, rng); // of -1..1
  for (int64_t i = 0; i < 3 * 7; ++i)
    x.as<float>()[i / 7 * 49 + i % 7 * 8] += 8;
  Tensor y = runOp("inverse", {x})[0];
  ASSERT_EQ(y.dims, x.dims);
  // Rows of x have sizes of at most 15 in sum, and entries of y are at most 1 (the diagonal outweighs the
  // rest by 1): what rounding y to f32 changes in a sum is at most 15 * 2^-24.
  for (int64_t i = 0; i < x.elements(); ++i) {
    const float *row = x.as<float>() + i / 7 * 7, *column = y.as<float>() + i / 49 * 49 + i % 7;
    double sum = 0;
    for (int64_t k = 0; k < 7; ++k)
      sum += double(row[k]) * double(column[7 * k]);
    EXPECT_NEAR(sum, i % 49 % 8 == 0, 9e-7);
  }
  EXPECT_EQ(runOp("inverse", {floats({0, 2, 4, 0}, {2, 2})})[0].as<float>()[1], 0.25f); // needs a pivot
  EXPECT_THAT(refusal("inverse", {zeros(DType::F32, {2, 3})}), testing::HasSubstr("must be square"));
}

TEST(Det, PivotsAndSigns) {
  Tensor x = floats({0, 1, 1, 0, 2, 3, 4, 6, 1, 2, 3, 4}, {3, 2, 2});
  EXPECT_THAT(values(runOp("det", {x})[0]), testing::ElementsAre(-1, 0, -2));
  EXPECT_THAT(values(runOp("det", {floats({2, 0, 1, 1, 3, 2, 1, 1, 4}, {3, 3})})[0]),
              testing::ElementsAre(18));
  EXPECT_THAT(values(runOp("det", {zeros(DType::F32, {0, 0})})[0]),
              testing::ElementsAre(1)); // the empty product
  EXPECT_THAT(refusal("det", {zeros(DType::F32, {2, 3})}), testing::HasSubstr("square"));
}

TEST(Binarizer, IsStrict) {
  AttrList attrs;
  attrs.setFloat("threshold", 1);
  EXPECT_THAT(values(runOp("binarizer", {floats({0, 1, 1.5, NAN}, {4})}, attrs)[0]),
              testing::ElementsAre(0, 0, 1, 0));
}

TEST(LabelEncoder, LastKeyWinsAndNanIsAKey) {
  AttrList attrs;
  attrs.setFloats("keys_floats", {1, 2, 1, NAN}).set("values_int64s", std::vector<int64_t>{10, 20, 30, 40});
  attrs.set("default_int64", -5);
  Tensor y = runOp("label_encoder", {floats({1, 2, 3, NAN}, {4})}, attrs)[0];
  EXPECT_THAT(std::vector<int64_t>(y.as<int64_t>(), y.as<int64_t>() + 4),
              testing::ElementsAre(30, 20, -5, 40));
  AttrList uneven;
  uneven.setFloats("keys_floats", {1, 2}).set("values_int64s", std::vector<int64_t>{10});
  EXPECT_THAT(refusal("label_encoder", {floats({1}, {1})}, uneven), testing::HasSubstr("as many"));
}

AttrList grams(const char *mode, int64_t low, int64_t high, int64_t skip) {
  AttrList attrs;
  attrs.set("mode", mode)
      .set("min_gram_length", low)
      .set("max_gram_length", high)
      .set("max_skip_count", skip);
  // Unigrams 1, 2; bigrams (1,2), (2,1). Columns in another order.
  attrs.set("pool_int64s", std::vector<int64_t>{1, 2, 1, 2, 2, 1})
      .set("ngram_counts", std::vector<int64_t>{0, 2});
  attrs.set("ngram_indexes", std::vector<int64_t>{3, 2, 1, 0}).setFloats("weights", {0.5, 2, 1, 4});
  return attrs;
}

TEST(PairwiseProbability, OfTwoAndOfConsistentPairs) {
  AttrList two;
  two.set("classes", 2);
  // Of two classes the pair's own: the iteration stops within 0.005 / 2 of the optimum's conditions.
  std::vector<float> p = values(runOp("pairwise_probability", {floats({0.5, 0.9f}, {2, 1})}, two)[0]);
  EXPECT_THAT(p, testing::Pointwise(testing::FloatNear(5e-3f), {0.5f, 0.5f, 0.9f, 0.1f}));
  // r_ij = p_i / (p_i + p_j) of p = (0.2, 0.3, 0.5) has p itself as its optimum.
  AttrList three;
  three.set("classes", 3);
  p = values(runOp("pairwise_probability", {floats({0.4f, 2.0f / 7, 0.375f}, {1, 3})}, three)[0]);
  EXPECT_THAT(p, testing::Pointwise(testing::FloatNear(1e-2f), {0.2f, 0.3f, 0.5f}));
  EXPECT_NEAR(p[0] + p[1] + p[2], 1, 1e-6);
  EXPECT_THAT(refusal("pairwise_probability", {floats({1, 1}, {1, 2})}, three),
              testing::HasSubstr("each pair of 3"));
  EXPECT_THAT(refusal("pairwise_probability", {floats({1}, {1, 1})}, {}), testing::HasSubstr("classes"));
}

TEST(TfIdf, CountsGramsWithSkips) {
  Tensor x = indices({1, 2, 2, 1, 9});
  EXPECT_THAT(values(runOp("tf_idf_vectorizer", {x}, grams("TF", 1, 1, 3))[0]),
              testing::ElementsAre(0, 0, 2, 2));
  EXPECT_THAT(values(runOp("tf_idf_vectorizer", {x}, grams("TF", 1, 2, 0))[0]),
              testing::ElementsAre(1, 1, 2, 2));
  // One skipped item adds (1, 2) at 0, 2 and (2, 1) at 1, 3.
  EXPECT_THAT(values(runOp("tf_idf_vectorizer", {x}, grams("TF", 2, 2, 1))[0]),
              testing::ElementsAre(2, 2, 0, 0));
  EXPECT_THAT(values(runOp("tf_idf_vectorizer", {x}, grams("IDF", 1, 2, 0))[0]),
              testing::ElementsAre(0.5, 2, 1, 4));
  EXPECT_THAT(values(runOp("tf_idf_vectorizer", {x}, grams("TFIDF", 1, 2, 0))[0]),
              testing::ElementsAre(0.5, 2, 2, 8));
}

TEST(TfIdf, Refusals) {
  EXPECT_THAT(refusal("tf_idf_vectorizer", {indices({1})}, grams("TF", 3, 2, 0)),
              testing::HasSubstr("max_gram_length"));
  EXPECT_THAT(refusal("tf_idf_vectorizer", {indices({1})}, grams("TFI", 1, 2, 0)),
              testing::HasSubstr("mode"));
}

using Ints = std::vector<int64_t>;

// Node 0: x0 <= 1 ? leaf 0 : node 1. Node 1: x1 in {3, 5} ? leaf 1 : leaf 2, where NaN is a member.
AttrList tree(Ints falseIds = {1, 2}) {
  AttrList attrs;
  attrs.set("n_targets", 2)
      .set("tree_roots", Ints{0})
      .set("nodes_modes", Ints{0, 6})
      .set("nodes_featureids", Ints{0, 1});
  attrs.setFloats("nodes_splits", {1, 0}).setFloats("membership_values", {3, 5, NAN});
  attrs.set("nodes_truenodeids", Ints{0, 1}).set("nodes_trueleafs", Ints{1, 1});
  attrs.set("nodes_falsenodeids", std::move(falseIds)).set("nodes_falseleafs", Ints{0, 1});
  attrs.set("nodes_missing_value_tracks_true", Ints{0, 1});
  attrs.set("leaf_targetids", Ints{0, 1, 1}).setFloats("leaf_weights", {10, 20, 30});
  return attrs;
}

TEST(TreeEnsemble, WalksToTheLeaf) {
  Tensor x = floats({1, 0, 2, 5, 2, 4, 2, NAN}, {4, 2});
  EXPECT_THAT(values(runOp("tree_ensemble", {x}, tree())[0]),
              testing::ElementsAre(10, 0, 0, 20, 0, 30, 0, 20));
  AttrList logistic = tree();
  logistic.set("post_transform", 2);
  EXPECT_THAT(values(runOp("tree_ensemble", {floats({1, 0}, {1, 2})}, logistic)[0]),
              testing::ElementsAre(testing::FloatEq(1 / (1 + std::exp(-10.0f))), 0.5));
}

TEST(TreeEnsemble, CyclesEndAndIndicesAreChecked) {
  EXPECT_THAT(values(runOp("tree_ensemble", {floats({2, 4}, {1, 2})}, tree({0, 2}))[0]),
              testing::ElementsAre(0, 0));
  EXPECT_THAT(refusal("tree_ensemble", {floats({2, 4}, {1, 2})}, tree({1, 3})),
              testing::HasSubstr("outside the trees"));
  EXPECT_THAT(refusal("tree_ensemble", {floats({2}, {1, 1})}, tree()),
              testing::HasSubstr("nodes_featureids"));
}

} // namespace
} // namespace dspark::test
