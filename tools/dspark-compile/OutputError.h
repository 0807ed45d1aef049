// How far the outputs of two plans are apart on the same inputs, by the metric that a bound names.
#pragma once
#include "runtime/base/Status.h"
#include <cstdint>
#include <string>
#include <vector>

namespace dspark {

/// A f32 output as rows of its last dim.
struct OutputRows {
  std::vector<float> values;
  int64_t width = 1;
};
/// The f32 tensors of one run's outputs.
using OutputNumbers = std::vector<OutputRows>;

enum class ErrorMetric {
  Relative, // |found - expected| / |expected|, Euclidean over all sets, of the output where it is largest
  Top1,     // the share of rows whose largest element is another one, of the output where it is largest
  Kl,       // mean over the rows of KL(softmax(expected) || softmax(found)), in nats, likewise
};

struct ErrorBound {
  ErrorMetric metric = ErrorMetric::Relative;
  double most = 0; // 0: nothing is rounded

  /// "0.01", "relative=0.01", "top1=0.001" or "kl=0.01"; InvalidArgument says what is expected.
  static StatusOr<ErrorBound> parse(const std::string &text);
  std::string metricName() const;
  /// What adds up over independent roundings: squares of relative errors, divergences (which are quadratic in
  /// the logits' errors) as they are.
  double additive(double error) const { return metric == ErrorMetric::Kl ? error : error * error; }
};

/// Infinite where one of the two has a NaN or infinity that the other has not.
double outputError(ErrorMetric metric, const std::vector<OutputNumbers> &found,
                   const std::vector<OutputNumbers> &expected);

} // namespace dspark
