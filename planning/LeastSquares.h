// Least squares with coefficients that may not be negative: the active-set method of Lawson and Hanson
// (Solving Least Squares Problems, 1974, chapter 23). Costs are sums of things that take time, so a negative
// coefficient could only be an artefact of the sample, and would make a prediction fall as work grows.
#pragma once
#include <span>
#include <vector>

namespace dspark {

/// The x >= 0 that minimises |A x - b|, A row-major [rows][columns]. Meant for a handful of columns: it works
/// on the normal equations, with columns scaled to length one. Columns of zeros get 0.
std::vector<double> nonNegativeLeastSquares(std::span<const double> a, std::span<const double> b,
                                            size_t columns);

struct Deviations {
  std::span<const double> a, b, weights; // [rows][columns], [rows], [rows]
  size_t relative = 0;                   // so many rows, the first ones, have b > 0 and count by ratio
};

/// The x >= 0 that minimises the weighted sum of |p - b|, p = A x, and for relative rows of |p - b| / sqrt(p
/// b), in which half of b is as far off as twice b; by reweighted least squares. Single samples that
/// something disturbed have little pull on it.
std::vector<double> nonNegativeLeastDeviations(const Deviations &rows, size_t columns);

} // namespace dspark
