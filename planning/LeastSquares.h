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

/// The x >= 0 that minimises the sum of |A x - b|, by least squares with weights 1 / |residual|. Single
/// samples that something disturbed have little pull on it.
std::vector<double> nonNegativeLeastAbsolute(std::span<const double> a, std::span<const double> b,
                                             size_t columns);

} // namespace dspark
