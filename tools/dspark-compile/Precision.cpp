#include "tools/dspark-compile/Precision.h"
#include "planning/MachineProfile.h"
#include "tools/dspark-compile/PrecisionReport.h"
#include "tools/dspark-rt/OptionTexts.h"
#include <filesystem>
#include <iostream>

namespace dspark {
namespace {

constexpr int kUsage = 1, kUnsupported = 2, kUnmet = 3, kOutOfMemory = 4;

int exitCodeOf(const Status &status) {
  return status.code() == Code::Unsupported   ? kUnsupported
         : status.code() == Code::OutOfMemory ? kOutOfMemory
                                              : kUsage;
}

StatusOr<PrecisionResult> search(const CompileOptions &options, const PrecisionOptions &precision,
                                 const MachineProfile &machine) {
  PrecisionRequest request;
  if (precision.precision != "f32")
    request.bound = precision.bound;
  request.sensitive = precision.sensitive;
  request.joinsSteps = precision.joinsSteps;
  request.forced = precision.forced;
  if (precision.precision != "auto" && precision.precision != "f32")
    request.only = precision.precision;
  request.calibration.files = precision.files;
  DSPARK_RETURN_IF_ERROR(parseDimSizes(precision.dims, request.calibration.dims, "--calib-dim"));
  DSPARK_ASSIGN_OR_RETURN(auto file, PlanFile::open(options.output));
  DSPARK_ASSIGN_OR_RETURN(auto program, Program::create(std::move(file)));
  return PrecisionSearch::run(*program, options, request, machine.model);
}

void fail(CompileReport &report, int exitCode, std::string message, const std::string &output) {
  report.exitCode = exitCode;
  report.message = std::move(message);
  std::error_code error;
  std::filesystem::remove(output, error);
}

std::string unmetMessage(const CompileOptions &options, const PrecisionOptions &precision,
                         const PrecisionResult &result) {
  char text[256];
  std::snprintf(text, sizeof text, ": the bound of %g on the %s cannot be met: the best reached is %.3g",
                precision.bound.most, precision.bound.metricName().c_str(),
                std::max(result.error, result.heldOutError));
  std::string message = options.model + text;
  if (result.limiting >= 0)
    message += ", limited by node '" + result.regions[size_t(result.limiting)].node + "'";
  return message;
}

} // namespace

CompileReport compileWithPrecision(CompileOptions options, const PrecisionOptions &precision,
                                   std::optional<PrecisionResult> &found) {
  if (!precision.isAsked()) {
    options.joinsSteps = precision.joinsSteps;
    return compileModel(options);
  }
  CompileReport report = compileModel(options);
  if (report.exitCode != 0)
    return report;
  std::string warning;
  MachineProfile machine = MachineProfile::ofThisMachine(warning);
  if (!warning.empty())
    std::cerr << "dspark-compile: " << warning << "\n";
  StatusOr<PrecisionResult> result = search(options, precision, machine);
  if (!result.isOk()) {
    fail(report, exitCodeOf(result.status()), options.model + ": " + result.status().message(),
         options.output);
    return report;
  }
  if (!result->isMet) {
    fail(report, kUnmet, unmetMessage(options, precision, *result), options.output);
    return report;
  }
  if (!result->options.precision.empty() || precision.joinsSteps)
    report = compileModel(result->options);
  if (report.exitCode == 0 && !precision.isExplained)
    std::cerr << options.output << ": " << precisionSummary(*result) << "\n";
  found = std::move(*result);
  return report;
}

} // namespace dspark
