// How long a kernel call takes on a machine. Pure arithmetic over CostFeatures and a table that
// `dspark-bench probe` fits, so that the compiler and the runtime predict with the same formula:
//
//   t = call + (work + heavy + steps + starts + bytes) / threads       each times its coefficient
//
// where bytes count as the time that the cache level (or memory) which holds them takes to deliver them. A
// kernel without coefficients gets the roofline: max(work / (eta * peak), bytes / bandwidth) + launch. Both
// grow with every feature.
#pragma once
#include "kernels/common/isa.h"
#include "planning/CostFeatures.h"
#include <map>
#include <string>
#include <vector>

namespace dspark {

/// Seconds per unit of each feature in the order of kCostTermNames; of moved and constant: how many times
/// slower than a plain read.
using CostTerms = std::array<double, kCostTermCount>;

/// One level of the memory hierarchy.
struct MemoryLevel {
  std::string name;        // "L1", "L2", "L3", "memory"
  double bytes = 0;        // what fits; of "memory" everything
  double onePerSecond = 0; // bytes that one thread reads
  double allPerSecond = 0; // that all threads read together
};

/// Arithmetic peaks of one core.
struct Peak {
  double f32 = 0, int8 = 0; // operations per second, a multiply-add counts 2
};

struct CostModel {
  int threads = 1; // with which allPerSecond was measured
  std::vector<MemoryLevel> levels;
  std::map<std::string, Peak> peaks; // by ISA level's name
  double launch = 1e-7;              // seconds of a call on the calling thread
  double barrier = 2e-6;             // of one phase on more than one thread
  std::map<std::string, CostTerms> kernels;

  /// Seconds that reading `bytes` of `footprint` takes, of which each level holds as much as fits into it.
  double readSeconds(double bytes, double footprint, int threads) const;
  /// The terms of `key`, else of the kernel without the last "/part" of the key, else of the same kernel at a
  /// lower ISA level; null if none has any.
  const CostTerms *termsOf(const std::string &key) const;
  /// The features as the columns that the terms multiply, on one thread: units, and seconds of plain reads.
  CostTerms columns(const CostFeatures &features, double footprint) const;
  /// The peaks of a level, of the next lower one that has any, or null: profiles may be older than a level.
  const Peak *peakOf(Isa isa) const;
  /// Terms to start from where nothing was measured: half of the peak, plain reads.
  CostTerms prior(const std::string &key) const;

  /// `footprint`: bytes that a run touches between two uses of the same weight (all weights and tensors).
  double predict(const CostFeatures &features, double footprint, int threads) const;
};

} // namespace dspark
