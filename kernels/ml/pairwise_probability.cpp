// pairwise_probability: probabilities of classes out of those of pairs. T.-F. Wu, C.-J. Lin, R. C. Weng,
// "Probability Estimates for Multi-class Classification by Pairwise Coupling", JMLR 5 (2004), algorithm 2,
// with libsvm's stopping rule: predictors that are trained with libsvm are compared with what this iteration
// gives, which is up to 0.005 / classes from its limit. Tiles are blocks of rows.
#include "kernels/common/element.h"
#include "kernels/ml/ml.h"
#include <algorithm>
#include <cmath>

namespace dspark {
namespace {

constexpr int64_t kBlock = 16;

struct CouplingState {
  int64_t rows, pairs, classes;
};

// The p that minimises the sum over i != j of (r_ji p_i - r_ij p_j)^2 with sum 1, where r_ij is the
// probability of i against j: p' Q p with the matrix q [k,k]. `qp` [k] is Q p.
void couple(const double *q, int64_t k, double *p, double *qp) {
  const double bound = 0.005 / double(k);
  std::fill(p, p + k, 1.0 / double(k));
  for (int64_t step = 0, most = std::max<int64_t>(100, k); step < most; ++step) {
    double total = 0, error = 0;
    for (int64_t i = 0; i < k; ++i) {
      qp[i] = 0;
      for (int64_t j = 0; j < k; ++j)
        qp[i] += q[i * k + j] * p[j];
      total += p[i] * qp[i];
    }
    for (int64_t i = 0; i < k; ++i)
      error = std::max(error, std::fabs(qp[i] - total));
    if (error < bound)
      return;
    for (int64_t i = 0; i < k; ++i) {
      double by = (total - qp[i]) / q[i * k + i], scale = 1 / (1 + by);
      p[i] += by;
      total = (total + by * (by * q[i * k + i] + 2 * qp[i])) * scale * scale;
      for (int64_t j = 0; j < k; ++j) {
        qp[j] = (qp[j] + by * q[i * k + j]) * scale;
        p[j] *= scale;
      }
    }
  }
}

// r [pairs]: of i against j, for i < j row by row.
void matrixOf(const float *r, int64_t k, double *q) {
  std::fill(q, q + k * k, 0.0);
  for (int64_t i = 0; i < k; ++i)
    for (int64_t j = i + 1; j < k; ++j) {
      double first = double(*r++), second = 1 - first;
      q[i * k + i] += second * second;
      q[j * k + j] += first * first;
      q[i * k + j] = q[j * k + i] = -first * second;
    }
}

} // namespace

void preparePairwiseProbability(const KernelCall &call, KernelWork &work) {
  auto &s = work.make<CouplingState>();
  s.rows = call.in[0].dim(0), s.pairs = call.in[0].dim(1), s.classes = call.out[0].dim(1);
  work.tiles[0] = uint32_t((s.rows + kBlock - 1) / kBlock);
  work.scratchPerThread = size_t(s.classes * (s.classes + 2)) * sizeof(double);
}

void runPairwiseProbability(const KernelCall &call, const KernelWork &work, const KernelPart &part) {
  const auto &s = work.get<CouplingState>();
  auto *q = reinterpret_cast<double *>(part.scratch), *p = q + s.classes * s.classes, *qp = p + s.classes;
  for (int64_t row = part.begin * kBlock, end = std::min(s.rows, int64_t(part.end) * kBlock); row < end;
       ++row) {
    matrixOf(call.in[0].as<const float>() + row * s.pairs, s.classes, q);
    couple(q, s.classes, p, qp);
    std::copy(p, p + s.classes, call.out[0].as<float>() + row * s.classes);
  }
}

} // namespace dspark
