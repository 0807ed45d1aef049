// The parts of a plan whose precision can be chosen: products of f32 rows with constant f32 weights, and the
// forms in fewer bits that the catalogue's kernels can take instead.
#pragma once
#include "runtime/executor/Program.h"
#include <string>
#include <vector>

namespace dspark {

struct PrecisionVariant {
  std::string layout, arithmetic; // of `matmul packed=...` (docs/packed-weights.md)
  std::vector<std::byte> weights; // packed
  double seconds = 0;             // per calibration pass, one thread, fastest of several
  double predicted = 0;           // by the cost model
  double noise = 0;               // squared difference from the f32 result, summed

  std::string name() const { return layout + (arithmetic.empty() ? "" : " " + arithmetic); }
};

struct PrecisionRegion {
  const StepInfo *step = nullptr;
  size_t product = 0; // its number in PrecisionChoices
  std::string node;   // ONNX names
  int64_t k = 0, n = 0;
  bool isPinned = false; // stays f32 whatever the bound
  std::string kernel;    // of f32
  double seconds = 0, predicted = 0, signal = 0;
  std::vector<PrecisionVariant> variants;

  /// Relative error of one variant's result: the square root of noise over signal.
  double error(const PrecisionVariant &variant) const;
};

/// The regions of a plan that was compiled without choices, in the order of their numbers, with packed
/// variants. Nodes that hold one of `sensitive` as a whole name are pinned; NotFound names one that none
/// does.
StatusOr<std::vector<PrecisionRegion>> precisionRegions(const Program &program,
                                                        const std::vector<std::string> &sensitive);

} // namespace dspark
