// Plans with given choices of precision, compiled to be run once or twice: their true error and their time.
#pragma once
#include "compiler/Pipeline/Compile.h"
#include "tools/dspark-compile/Calibration.h"
#include "tools/dspark-compile/PrecisionRegions.h"

namespace dspark {

/// A compiled plan whose file is gone already.
struct Candidate {
  std::shared_ptr<const Program> program;
  CompileReport report;
};

/// Compiles beside options.output for this machine alone. ExitCode and message of a compile that fails come
/// as a status.
StatusOr<Candidate> compileCandidate(CompileOptions options);

class CandidatePlans {
public:
  /// All outlive this. `options` are those of the compile, `ranges` of the values that may become bytes.
  CandidatePlans(CompileOptions options, std::vector<ByteRange> ranges,
                 const std::vector<PrecisionRegion> &regions, Calibration &calibration,
                 const std::vector<OutputNumbers> &expected)
      : options(std::move(options)), ranges(std::move(ranges)), regions(regions), calibration(calibration),
        expected(expected) {}

  /// The options that compile a choice (per region a variant or -1).
  CompileOptions optionsOf(const std::vector<int> &choices) const;
  /// A session of one thread.
  StatusOr<std::unique_ptr<Session>> open(const std::vector<int> &choices) const;
  /// True error of the outputs on sets [first, last).
  StatusOr<double> errorOf(ErrorMetric metric, Session &session, size_t first, size_t last) const;
  /// How many times longer `first` takes than `second`, both on the deciding sets by turns.
  StatusOr<double> ratio(Session &first, Session &second) const;

private:
  StatusOr<double> turn(Session &session) const;

  CompileOptions options;
  std::vector<ByteRange> ranges;
  const std::vector<PrecisionRegion> &regions;
  Calibration &calibration;
  const std::vector<OutputNumbers> &expected;
};

} // namespace dspark
