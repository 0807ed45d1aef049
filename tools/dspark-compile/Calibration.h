// The data that precisions are judged by: sets of inputs for a plan, of which some are held out to confirm
// what the others decided.
#pragma once
#include "runtime/executor/Session.h"
#include "tools/dspark-rt/Inputs.h"

namespace dspark {

struct CalibrationRequest {
  std::vector<std::string> files;      // FILE.npz, a set of inputs each; none: random inputs
  std::map<std::string, int64_t> dims; // of symbols, for random inputs
};

/// The tensors of one run's outputs that are f32, as numbers.
using OutputNumbers = std::vector<std::vector<float>>;

class Calibration {
public:
  /// Four random sets, or one per file. The last quarter, at least one set where there are two, is held out.
  /// Errors name the file and the input that does not fit.
  static StatusOr<Calibration> create(const Program &program, const CalibrationRequest &request);

  size_t sets() const { return inputs.size(); }
  size_t heldOut() const { return inputs.size() - decides; } // the last ones
  size_t deciding() const { return decides; }
  bool isSynthetic() const { return synthetic; }

  StatusOr<OutputNumbers> run(Session &session, size_t set);

private:
  std::vector<Inputs> inputs;
  size_t decides = 0;
  bool synthetic = true;
};

/// |found - expected| / |expected| (Euclidean, over all sets together) of the output where it is largest.
/// Infinite where one has a NaN or infinity that the other has not.
double relativeError(const std::vector<OutputNumbers> &found, const std::vector<OutputNumbers> &expected);

} // namespace dspark
