// Fits a CostModel's terms to measured calls, kernel by kernel, and says how well they fit.
#pragma once
#include "planning/CostModel.h"
#include <span>

namespace dspark {

/// One measured call on one thread.
struct CostSample {
  CostFeatures features;
  double footprint = 0; // bytes, as in CostModel::predict
  double seconds = 0;   // the least of several
  double weight = 1;    // in a fit
};

struct KernelFit {
  std::string key;
  size_t samples = 0;
  double median = 0, worst = 0; // relative error |predicted - measured| / measured
};
struct FitReport {
  std::vector<KernelFit> kernels;
  size_t samples = 0;
  double median = 0, worst = 0;
  double r2 = 0; // of the logarithms of seconds over all samples
};

/// How predictions compare with measurements: what a fit, and an evaluation on other shapes, report.
struct Accuracy {
  double median = 0, p90 = 0, worst = 0; // relative error
  double rank = 0;                       // Spearman's correlation
  double r2 = 0;                         // of logarithms
};
Accuracy accuracyOf(std::span<const double> predicted, std::span<const double> measured);

/// Sets model.kernels[key] for every key among the samples, and for each key without its last "/part".
/// Relative errors count, each sample the same; terms that the samples do not determine stay near the prior.
FitReport fitCosts(CostModel &model, std::span<const CostSample> samples);

} // namespace dspark
