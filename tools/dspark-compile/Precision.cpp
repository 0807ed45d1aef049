#include "tools/dspark-compile/Precision.h"
#include "planning/MachineProfile.h"
#include "tools/dspark-compile/PrecisionReport.h"
#include <charconv>
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

Status parseDims(const std::vector<std::string> &texts, std::map<std::string, int64_t> &dims) {
  for (const std::string &text : texts) {
    size_t equals = text.rfind('=');
    int64_t value = -1;
    const char *end = text.data() + text.size();
    if (equals == text.npos || equals == 0 ||
        std::from_chars(text.data() + equals + 1, end, value).ptr != end || value < 0)
      return invalidArgument("--calib-dim expects NAME=N with N >= 0, found '" + text + "'");
    dims[text.substr(0, equals)] = value;
  }
  return Status::ok();
}

StatusOr<PrecisionResult> search(const std::string &plan, const PrecisionOptions &options,
                                 const MachineProfile &machine) {
  PrecisionRequest request;
  request.maxError = options.precision == "f32" ? 0 : options.maxError;
  request.sensitive = options.sensitive;
  request.only = options.precision == "auto" || options.precision == "f32" ? "" : options.precision;
  request.calibration.files = options.files;
  DSPARK_RETURN_IF_ERROR(parseDims(options.dims, request.calibration.dims));
  DSPARK_ASSIGN_OR_RETURN(auto file, PlanFile::open(plan));
  DSPARK_ASSIGN_OR_RETURN(auto program, Program::create(std::move(file)));
  DSPARK_ASSIGN_OR_RETURN(auto search, PrecisionSearch::create(program, request, machine.model));
  return search.run();
}

// The plan's products are the compiler's, one by one.
Status checkSame(const PrecisionResult &result, const CompileReport &report) {
  bool isSame = result.regions.size() == report.products.size();
  for (size_t r = 0; isSame && r < result.regions.size(); ++r)
    isSame = result.regions[r].k == report.products[r].k && result.regions[r].n == report.products[r].n;
  return isSame ? Status::ok()
                : Status(Code::Internal, "the plan's products are not those that the compiler packed (" +
                                             std::to_string(result.regions.size()) + " and " +
                                             std::to_string(report.products.size()) + ")");
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
  std::snprintf(text, sizeof text,
                ": the bound of %g on the relative output error cannot be met: the best reached is %.3g",
                precision.maxError, std::max(result.error, result.heldOutError));
  std::string message = options.model + text;
  if (result.limiting >= 0)
    message += ", limited by node '" + result.regions[size_t(result.limiting)].node + "'";
  return message;
}

} // namespace

CompileReport compileWithPrecision(CompileOptions options, const PrecisionOptions &precision) {
  CompileReport report = compileModel(options);
  if (report.exitCode != 0)
    return report;
  std::string warning;
  MachineProfile machine = MachineProfile::ofThisMachine(warning);
  if (!warning.empty())
    std::cerr << "dspark-compile: " << warning << "\n";
  StatusOr<PrecisionResult> result = search(options.output, precision, machine);
  Status status = result.isOk() ? checkSame(*result, report) : result.status();
  if (!status.isOk()) {
    fail(report, exitCodeOf(status), options.model + ": " + status.message(), options.output);
    return report;
  }
  if (precision.explain == "table")
    std::cout << explainTable(*result, machine.source);
  else if (precision.explain == "json")
    std::cout
        << explainJson(*result, machine.source).dump(1, ' ', false, nlohmann::json::error_handler_t::replace)
        << "\n";
  if (!result->isMet) {
    fail(report, kUnmet, unmetMessage(options, precision, *result), options.output);
    return report;
  }
  for (size_t r = 0; r < result->regions.size(); ++r)
    if (int choice = result->choices[r]; choice >= 0) {
      const PrecisionVariant &variant = result->regions[r].variants[size_t(choice)];
      options.precision[r] = {variant.layout, variant.arithmetic};
    }
  if (!options.precision.empty())
    report = compileModel(options);
  if (report.exitCode == 0 && precision.explain.empty())
    std::cerr << options.output << ": " << precisionSummary(*result) << "\n";
  return report;
}

} // namespace dspark
