#include "tools/dspark-compile/OutputError.h"
#include <algorithm>
#include <charconv>
#include <cmath>

namespace dspark {
namespace {

// Sums over one output; error() is what the bound is on.
struct Tally {
  double noise = 0, signal = 0; // of the relative error
  double rows = 0, divergence = 0, changed = 0;

  void addElements(const OutputRows &a, const OutputRows &b) {
    for (size_t i = 0; i < b.values.size(); ++i)
      if (std::isfinite(b.values[i])) {
        double off = double(a.values[i]) - double(b.values[i]);
        noise += off * off;
        signal += double(b.values[i]) * double(b.values[i]);
      }
  }

  void addRows(const OutputRows &a, const OutputRows &b) {
    for (size_t begin = 0; begin + size_t(b.width) <= b.values.size(); begin += size_t(b.width)) {
      const float *p = a.values.data() + begin, *q = b.values.data() + begin;
      size_t found = size_t(std::max_element(p, p + b.width) - p);
      size_t wanted = size_t(std::max_element(q, q + b.width) - q);
      changed += q[found] < q[wanted];
      if (double kl = klOf(p, q, size_t(b.width)); std::isfinite(kl)) // not of rows with NaN or infinity
        divergence += kl;
      rows += 1;
    }
  }

  double error(ErrorMetric metric) const {
    if (metric == ErrorMetric::Relative)
      return noise == 0 ? 0 : signal > 0 ? std::sqrt(noise / signal) : INFINITY;
    if (rows == 0)
      return 0;
    return (metric == ErrorMetric::Top1 ? changed : std::max(divergence, 0.0)) / rows;
  }

private:
  static double logSum(const float *x, size_t n) {
    double most = double(*std::max_element(x, x + n)), sum = 0;
    for (size_t i = 0; i < n; ++i)
      sum += std::exp(double(x[i]) - most);
    return most + std::log(sum);
  }
  static double klOf(const float *found, const float *expected, size_t n) {
    double logFound = logSum(found, n), logExpected = logSum(expected, n), sum = 0;
    for (size_t i = 0; i < n; ++i) {
      double log = double(expected[i]) - logExpected;
      if (double share = std::exp(log); share > 0) // -inf, a masked class, has none
        sum += share * (log - (double(found[i]) - logFound));
    }
    return sum;
  }
};

bool sameKind(const OutputRows &a, const OutputRows &b) {
  if (a.values.size() != b.values.size() || a.width != b.width)
    return false;
  for (size_t i = 0; i < a.values.size(); ++i) {
    float x = a.values[i], y = b.values[i];
    if (!(std::isfinite(x) && std::isfinite(y)) && !(x == y || (std::isnan(x) && std::isnan(y))))
      return false;
  }
  return true;
}

} // namespace

StatusOr<ErrorBound> ErrorBound::parse(const std::string &text) {
  size_t equals = text.find('=');
  std::string name = equals == text.npos ? "relative" : text.substr(0, equals);
  ErrorBound bound;
  if (name == "top1")
    bound.metric = ErrorMetric::Top1;
  else if (name == "kl")
    bound.metric = ErrorMetric::Kl;
  const char *begin = text.data() + (equals == text.npos ? 0 : equals + 1), *end = text.data() + text.size();
  auto [last, error] = std::from_chars(begin, end, bound.most);
  bool isKnown = name == "relative" || name == "top1" || name == "kl";
  if (!isKnown || error != std::errc() || last != end || !(bound.most >= 0 && bound.most <= 10))
    return invalidArgument(
        "--max-error expects a number from 0 to 10, or relative=, top1= or kl= and one; found '" + text +
        "'");
  return bound;
}

std::string ErrorBound::metricName() const {
  return metric == ErrorMetric::Relative ? "relative output error"
         : metric == ErrorMetric::Top1   ? "share of changed top-1 answers"
                                         : "KL divergence of the outputs";
}

double outputError(ErrorMetric metric, const std::vector<OutputNumbers> &found,
                   const std::vector<OutputNumbers> &expected) {
  std::vector<Tally> tallies;
  for (size_t set = 0; set < expected.size(); ++set) {
    if (found[set].size() != expected[set].size())
      return INFINITY;
    tallies.resize(std::max(tallies.size(), expected[set].size()));
    for (size_t k = 0; k < expected[set].size(); ++k) {
      if (!sameKind(found[set][k], expected[set][k]))
        return INFINITY;
      if (metric == ErrorMetric::Relative)
        tallies[k].addElements(found[set][k], expected[set][k]);
      else
        tallies[k].addRows(found[set][k], expected[set][k]);
    }
  }
  double worst = 0;
  for (const Tally &tally : tallies)
    worst = std::max(worst, tally.error(metric));
  return worst;
}

} // namespace dspark
