#include "planning/LeastSquares.h"
#include <cmath>
#include <gtest/gtest.h>
#include <random>

namespace dspark {
namespace {

double residual(const std::vector<double> &a, const std::vector<double> &b, const std::vector<double> &x) {
  double sum = 0;
  for (size_t row = 0; row < b.size(); ++row) {
    double r = -b[row];
    for (size_t j = 0; j < x.size(); ++j)
      r += a[row * x.size() + j] * x[j];
    sum += r * r;
  }
  return sum;
}

TEST(LeastSquares, RecoversPositiveCoefficients) {
  std::mt19937 rng(1);
  std::uniform_real_distribution<double> draw(0.1, 1);
  std::vector<double> x = {2, 0, 5e-3, 7}, a, b;
  for (int row = 0; row < 40; ++row) {
    b.push_back(0);
    for (double coefficient : x) {
      a.push_back(draw(rng));
      b.back() += coefficient * a.back();
    }
  }
  std::vector<double> found = nonNegativeLeastSquares(a, b, 4);
  for (size_t j = 0; j < 4; ++j)
    EXPECT_NEAR(found[j], x[j], 1e-8);
}

// The Karush-Kuhn-Tucker conditions are necessary and sufficient here: where x is 0 the sum of squares must
// not fall into x > 0, and elsewhere its slope must vanish. 1e-7 of |A|^2 |b| is what the normal equations
// leave.
TEST(LeastSquares, IsOptimalOnRandomProblems) {
  std::mt19937 rng(2);
  std::normal_distribution<double> draw;
  for (int problem = 0; problem < 300; ++problem) {
    size_t columns = 1 + rng() % 6, rows = 3 + rng() % 20;
    std::vector<double> a(rows * columns), b(rows);
    for (double &value : a)
      value = draw(rng);
    for (double &value : b)
      value = draw(rng);
    std::vector<double> x = nonNegativeLeastSquares(a, b, columns);
    for (size_t j = 0; j < columns; ++j) {
      EXPECT_GE(x[j], 0);
      double slope = 0, length = 0;
      for (size_t row = 0; row < rows; ++row) {
        double r = b[row];
        for (size_t k = 0; k < columns; ++k)
          r -= a[row * columns + k] * x[k];
        slope += r * a[row * columns + j];
        length += a[row * columns + j] * a[row * columns + j];
      }
      EXPECT_LE(slope, 1e-7 * (1 + length)) << "column " << j << " of problem " << problem;
      if (x[j] > 1e-9)
        EXPECT_NEAR(slope, 0, 1e-7 * (1 + length)) << "column " << j << " of problem " << problem;
    }
  }
}

TEST(LeastSquares, ToleratesEqualAndEmptyColumns) {
  std::vector<double> a = {1, 1, 0, 2, 2, 0, 3, 3, 0}, b = {2, 4, 6};
  std::vector<double> x = nonNegativeLeastSquares(a, b, 3);
  EXPECT_NEAR(x[0] + x[1], 2, 1e-9);
  EXPECT_EQ(x[2], 0);
  EXPECT_NEAR(residual(a, b, x), 0, 1e-15);
  EXPECT_EQ(nonNegativeLeastSquares({}, {}, 2), (std::vector<double>{0, 0}));
}

// One sample in twenty that is ten times off moves the least-squares line, not this one.
TEST(LeastSquares, DeviationsIgnoreDisturbedSamples) {
  std::vector<double> a, b, weights(20, 1);
  for (int row = 1; row <= 20; ++row) {
    a.insert(a.end(), {double(row), 1});
    b.push_back(row == 7 ? 10 * (3.0 * row + 2) : 3.0 * row + 2);
  }
  for (size_t relative : {0, 20}) {
    std::vector<double> x = nonNegativeLeastDeviations({a, b, weights, relative}, 2);
    EXPECT_NEAR(x[0], 3, 0.02);
    EXPECT_NEAR(x[1], 2, 0.2);
  }
}

// Samples of one cause in two groups that differ: the answer is the larger group's, by number or by weight.
TEST(LeastSquares, DeviationsByWeightAndByRatio) {
  std::vector<double> a(5, 1), b = {1, 1, 4, 4, 4}, equal(5, 1), heavy = {10, 10, 1, 1, 1};
  EXPECT_NEAR(nonNegativeLeastDeviations({a, b, equal}, 1)[0], 4, 0.01);
  EXPECT_NEAR(nonNegativeLeastDeviations({a, b, heavy}, 1)[0], 1, 0.01);
  EXPECT_NEAR(nonNegativeLeastDeviations({a, b, equal, 5}, 1)[0], 4, 0.1);
}

} // namespace
} // namespace dspark
