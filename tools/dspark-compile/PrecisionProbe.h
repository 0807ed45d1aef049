// The plan that can compute every region in any of its forms, and what runs of it tell: times and errors of
// each form, and the outputs' error with any choice. Errors found here are those of the choice but for sums
// that real plans keep in bytes; what is written is measured again (CandidatePlans.h).
#pragma once
#include "tools/dspark-compile/Calibration.h"
#include "tools/dspark-compile/PrecisionMeter.h"

namespace dspark {

class PrecisionProbe {
public:
  /// `program` is of ByteMode::Compare, or has no contractions that may run on bytes; `report` of its
  /// compile.
  static StatusOr<std::unique_ptr<PrecisionProbe>>
  create(std::shared_ptr<const Program> program, const CompileReport &report, Calibration &calibration,
         const std::vector<std::string> &sensitive, const CostModel &model);

  /// One pass over the sets: f32 results of all, the regions' variants on those that decide. Times and
  /// predictions become those of a mean set.
  Status measure();
  /// Of the outputs with choices (per region a variant or -1) on sets [first, last).
  StatusOr<double> errorOf(ErrorMetric metric, const std::vector<int> &choices, size_t first, size_t last);

  std::vector<PrecisionRegion> &regions() { return found; }
  const std::vector<OutputNumbers> &expected() const { return outputs; }

private:
  PrecisionProbe(Calibration &calibration) : calibration(calibration) {}
  StatusOr<OutputNumbers> run(size_t set);
  void takeErrors();

  Calibration &calibration;
  std::shared_ptr<const Program> program;
  std::unique_ptr<Session> session;
  std::vector<PrecisionRegion> found;
  std::unique_ptr<PrecisionMeter> meter;
  std::vector<uint8_t> flags; // per contraction: bytes
  std::vector<OutputNumbers> outputs;
};

} // namespace dspark
