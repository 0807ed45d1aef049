#include "planning/CostFit.h"
#include "planning/LeastSquares.h"
#include <algorithm>
#include <cmath>
#include <numeric>

namespace dspark {
namespace {

double at(std::vector<double> values, double share) {
  if (values.empty())
    return 0;
  std::sort(values.begin(), values.end());
  return values[size_t(share * double(values.size() - 1))];
}

std::vector<double> ranks(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> rank(values.size());
  for (size_t i = 0, j; i < order.size(); i = j) {
    for (j = i; j < order.size() && values[order[j]] == values[order[i]]; ++j)
      ;
    for (size_t k = i; k < j; ++k)
      rank[order[k]] = double(i + j - 1) / 2;
  }
  return rank;
}

double meanOf(std::span<const double> v) {
  return v.empty() ? 0 : std::accumulate(v.begin(), v.end(), 0.0) / double(v.size());
}

double correlation(std::span<const double> a, std::span<const double> b) {
  double ma = meanOf(a), mb = meanOf(b), ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - ma) * (b[i] - mb);
    aa += (a[i] - ma) * (a[i] - ma);
    bb += (b[i] - mb) * (b[i] - mb);
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0;
}

double logR2(std::span<const double> predicted, std::span<const double> measured) {
  std::vector<double> logs;
  for (double value : measured)
    logs.push_back(std::log(value));
  double mean = meanOf(logs), residual = 0, total = 0;
  for (size_t i = 0; i < logs.size(); ++i) {
    double error = std::log(std::max(predicted[i], 1e-12)) - logs[i];
    residual += error * error;
    total += (logs[i] - mean) * (logs[i] - mean);
  }
  return total > 0 ? 1 - residual / total : 1;
}

// One kernel: columns in units of the prior, divided by the measured time, so that every term is near 1 and
// every sample's target is 1; ratios count. A row per term pulls it towards the prior with a pull that a
// handful of samples overcome.
CostTerms fitKernel(const CostModel &model, const std::string &key,
                    std::span<const CostSample *const> samples) {
  constexpr double kPull = 0.02;
  constexpr size_t n = kCostTermCount;
  CostTerms prior = model.prior(key);
  std::vector<double> a, b, weights;
  for (const CostSample *sample : samples) {
    CostTerms column = model.columns(sample->features, sample->footprint);
    for (size_t j = 0; j < n; ++j)
      a.push_back(column[j] * prior[j] / sample->seconds);
    b.push_back(1);
    weights.push_back(sample->weight);
  }
  for (size_t j = 0; j < n; ++j) {
    a.insert(a.end(), n, 0);
    a[a.size() - n + j] = kPull;
    b.push_back(kPull * (j < 2 || j > 3 ? 1 : 0)); // steps and starts only where samples show them
  }
  weights.insert(weights.end(), n, 1);
  std::vector<double> x = nonNegativeLeastDeviations({a, b, weights, samples.size()}, n);
  CostTerms terms;
  for (size_t j = 0; j < n; ++j)
    terms[j] = x[j] * prior[j];
  return terms;
}

} // namespace

Accuracy accuracyOf(std::span<const double> predicted, std::span<const double> measured) {
  std::vector<double> errors;
  for (size_t i = 0; i < measured.size(); ++i)
    errors.push_back(std::fabs(predicted[i] - measured[i]) / measured[i]);
  return {at(errors, 0.5), at(errors, 0.9), at(errors, 1), correlation(ranks(predicted), ranks(measured)),
          logR2(predicted, measured)};
}

FitReport fitCosts(CostModel &model, std::span<const CostSample> samples) {
  std::map<std::string, std::vector<const CostSample *>> groups;
  for (const CostSample &sample : samples)
    if (sample.seconds > 0)
      groups[sample.features.key].push_back(&sample);
  // A kernel's samples together, for keys that have none of their own.
  std::map<std::string, std::vector<const CostSample *>> families;
  for (const auto &[key, group] : groups)
    for (size_t slash = key.rfind('/'); slash != key.npos && slash > 0; slash = key.rfind('/', slash - 1))
      families[key.substr(0, slash)].insert(families[key.substr(0, slash)].end(), group.begin(), group.end());
  for (const auto &[key, group] : families)
    model.kernels[key] = fitKernel(model, key, group);
  FitReport report;
  std::vector<double> allPredicted, allMeasured;
  for (const auto &[key, group] : groups) {
    model.kernels[key] = fitKernel(model, key, group);
    std::vector<double> predicted, measured;
    for (const CostSample *sample : group) {
      predicted.push_back(model.predict(sample->features, sample->footprint, 1));
      measured.push_back(sample->seconds);
    }
    Accuracy accuracy = accuracyOf(predicted, measured);
    report.kernels.push_back({key, group.size(), accuracy.median, accuracy.worst});
    allPredicted.insert(allPredicted.end(), predicted.begin(), predicted.end());
    allMeasured.insert(allMeasured.end(), measured.begin(), measured.end());
  }
  Accuracy all = accuracyOf(allPredicted, allMeasured);
  report.samples = allMeasured.size();
  report.median = all.median;
  report.worst = all.worst;
  report.r2 = all.r2;
  return report;
}

} // namespace dspark
