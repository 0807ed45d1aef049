#include "planning/LeastSquares.h"
#include <algorithm>
#include <cmath>

namespace dspark {
namespace {

// A'A and A'b with columns of length one.
struct Normal {
  Normal(std::span<const double> a, std::span<const double> b, size_t n)
      : n(n), scale(n), ata(n * n), atb(n) {
    for (size_t row = 0; row < b.size(); ++row)
      for (size_t j = 0; j < n; ++j)
        scale[j] += a[row * n + j] * a[row * n + j];
    for (double &s : scale)
      s = s > 0 ? 1 / std::sqrt(s) : 0;
    for (size_t row = 0; row < b.size(); ++row)
      for (size_t j = 0; j < n; ++j) {
        double value = a[row * n + j] * scale[j];
        atb[j] += value * b[row];
        for (size_t k = 0; k < n; ++k)
          ata[j * n + k] += value * a[row * n + k] * scale[k];
      }
  }

  /// Half the gradient of -|A x - b|^2 in x's j-th coordinate.
  double slope(size_t j, const std::vector<double> &x) const {
    double sum = atb[j];
    for (size_t k = 0; k < n; ++k)
      sum -= ata[j * n + k] * x[k];
    return sum;
  }

  /// The unbounded solution in the coordinates of `passive`, 0 elsewhere; by Cholesky's decomposition.
  /// Columns that depend on earlier ones get 0.
  std::vector<double> solve(const std::vector<char> &passive) const {
    std::vector<size_t> at;
    for (size_t j = 0; j < n; ++j)
      if (passive[j])
        at.push_back(j);
    size_t m = at.size();
    std::vector<double> lower(m * m), y(m), x(n);
    constexpr double kDependent = 1e-12; // of a squared column of length one
    for (size_t i = 0; i < m; ++i) {
      for (size_t j = 0; j <= i; ++j) {
        double sum = ata[at[i] * n + at[j]];
        for (size_t k = 0; k < j; ++k)
          sum -= lower[i * m + k] * lower[j * m + k];
        if (i == j)
          lower[i * m + i] = sum > kDependent ? std::sqrt(sum) : 0;
        else
          lower[i * m + j] = lower[j * m + j] > 0 ? sum / lower[j * m + j] : 0;
      }
      double sum = atb[at[i]];
      for (size_t k = 0; k < i; ++k)
        sum -= lower[i * m + k] * y[k];
      y[i] = lower[i * m + i] > 0 ? sum / lower[i * m + i] : 0;
    }
    for (size_t i = m; i-- > 0;) {
      double sum = y[i];
      for (size_t k = i + 1; k < m; ++k)
        sum -= lower[k * m + i] * x[at[k]];
      x[at[i]] = lower[i * m + i] > 0 ? sum / lower[i * m + i] : 0;
    }
    return x;
  }

  size_t n;
  std::vector<double> scale, ata, atb;
};

// Moves from x towards `target` until the first passive coordinate reaches 0, which then leaves the set.
void stepTowards(std::vector<double> &x, const std::vector<double> &target, std::vector<char> &passive) {
  double share = 1;
  size_t leaving = x.size();
  for (size_t j = 0; j < x.size(); ++j)
    if (passive[j] && target[j] <= 0) {
      double reached = x[j] > target[j] ? x[j] / (x[j] - target[j]) : 0;
      if (leaving == x.size() || reached < share) {
        share = reached;
        leaving = j;
      }
    }
  for (size_t j = 0; j < x.size(); ++j)
    x[j] += share * (target[j] - x[j]);
  x[leaving] = 0;
  passive[leaving] = 0;
}

} // namespace

std::vector<double> nonNegativeLeastSquares(std::span<const double> a, std::span<const double> b,
                                            size_t columns) {
  Normal normal(a, b, columns);
  std::vector<double> x(columns);
  std::vector<char> passive(columns);
  // Each round lets the coordinate with the steepest descent in; the sum of squares falls strictly, so no set
  // comes twice, and three rounds per column are more than any case has needed.
  for (size_t round = 0; round < 3 * columns; ++round) {
    size_t entering = columns;
    double steepest =
        1e-12 *
        std::sqrt(std::max(1e-300,
                           normal.atb.empty() ? 0 : *std::max_element(normal.atb.begin(), normal.atb.end())));
    for (size_t j = 0; j < columns; ++j)
      if (!passive[j] && normal.scale[j] > 0 && normal.slope(j, x) > steepest) {
        steepest = normal.slope(j, x);
        entering = j;
      }
    if (entering == columns)
      break;
    passive[entering] = 1;
    for (;;) {
      std::vector<double> target = normal.solve(passive);
      bool isInside = true;
      for (size_t j = 0; j < columns; ++j)
        isInside &= !passive[j] || target[j] > 0;
      if (isInside) {
        x = target;
        break;
      }
      stepTowards(x, target, passive);
    }
  }
  for (size_t j = 0; j < columns; ++j)
    x[j] *= normal.scale[j];
  return x;
}

std::vector<double> nonNegativeLeastDeviations(const Deviations &rows, size_t columns) {
  constexpr int kRounds = 15;
  constexpr double kLeast = 1e-3, kSmallest = 0.02; // of a deviation, of a relative row's sum; both of b
  size_t count = rows.b.size();
  double size = 0;
  for (double value : rows.b)
    size += std::fabs(value) / double(count);
  std::vector<double> weighted(rows.a.size()), target(count), scale(count), x;
  for (size_t row = 0; row < count; ++row)
    scale[row] = std::sqrt(rows.weights[row]);
  for (int round = 0; round < kRounds; ++round) {
    for (size_t row = 0; row < count; ++row) {
      for (size_t j = 0; j < columns; ++j)
        weighted[row * columns + j] = rows.a[row * columns + j] * scale[row];
      target[row] = rows.b[row] * scale[row];
    }
    x = nonNegativeLeastSquares(weighted, target, columns);
    for (size_t row = 0; row < count; ++row) {
      double sum = 0;
      for (size_t j = 0; j < columns; ++j)
        sum += rows.a[row * columns + j] * x[j];
      double deviation = std::max(std::fabs(sum - rows.b[row]), kLeast * size) + 1e-300;
      // |p - b| / sqrt(p b) has the slope of |p - b| times (p + b) / (2 p sqrt(p b)).
      if (double b = rows.b[row], p = std::max(sum, kSmallest * b); row < rows.relative)
        deviation *= 2 * p * std::sqrt(p * b) / (p + b);
      scale[row] = std::sqrt(rows.weights[row] / deviation);
    }
  }
  return x;
}

} // namespace dspark
