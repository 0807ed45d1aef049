// Chooses the precision of every region of a plan under a bound on the error of the whole: variants are
// measured where they would run, the solver picks, runs with the picked variants tell the true error, and
// what does too much is reverted until the bound holds.
#pragma once
#include "tools/dspark-compile/Calibration.h"
#include "tools/dspark-compile/PrecisionMeter.h"

namespace dspark {

struct PrecisionRequest {
  double maxError = 0;                // relative, of the outputs (Calibration.h); 0: loss-free
  std::vector<std::string> sensitive; // nodes that stay f32
  std::string only;                   // a layout that every region takes that may; "" chooses
  CalibrationRequest calibration;
};

struct PrecisionResult {
  std::vector<PrecisionRegion> regions;
  std::vector<int> choices;           // per region: a variant, or -1 for f32
  std::vector<std::string> reasons;   // per region: the best rejected alternative, and why
  double error = 0;                   // on the sets that decided
  double heldOutError = 0;            // on the others, measured with the same runs
  double seconds = 0, f32Seconds = 0; // of all regions per pass, one thread
  bool isMet = true;
  int limiting = -1; // with !isMet: the region that does most
  size_t deciding = 0, heldOut = 0;
  bool isSynthetic = true;
};

class PrecisionSearch {
public:
  /// `plan` was compiled without choices.
  static StatusOr<PrecisionSearch> create(std::shared_ptr<const Program> program,
                                          const PrecisionRequest &request, const CostModel &model);

  StatusOr<PrecisionResult> run();

private:
  PrecisionSearch(PrecisionRequest request) : request(std::move(request)) {}
  Status measure();
  StatusOr<double> errorOf(const std::vector<int> &choices, size_t firstSet, size_t lastSet);
  std::vector<int> solve(double budget) const;
  Status measureGains(const std::vector<int> &choices, double allError);
  Status search();
  Status revertUntil(size_t firstSet, size_t lastSet, double &error);
  int worst() const;
  std::string reasonFor(size_t region) const;

  PrecisionRequest request;
  std::shared_ptr<const Program> program;
  std::unique_ptr<Session> session;
  Calibration calibration;
  std::unique_ptr<PrecisionMeter> meter;
  PrecisionResult result;
  std::vector<OutputNumbers> expected;
  std::vector<double> gains; // per region: squared error of the outputs per squared relative error of its own
};

} // namespace dspark
