#include "tools/dspark-compile/CandidatePlans.h"
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

namespace dspark {
namespace {

// Turns of a comparison: as many as fit into the time, within these.
constexpr size_t kLeastTurns = 7, kMostTurns = 201;
constexpr double kTurnSeconds = 1.5;

Code codeOf(int exitCode) {
  return exitCode == 2 ? Code::Unsupported : exitCode == 4 ? Code::OutOfMemory : Code::InvalidArgument;
}

} // namespace

StatusOr<Candidate> compileCandidate(CompileOptions options) {
  options.output += ".candidate";
  options.isa = std::min(options.isa.value_or(activeIsa()), activeIsa());
  Candidate candidate;
  candidate.report = compileModel(options);
  if (candidate.report.exitCode != 0)
    return Status(codeOf(candidate.report.exitCode), candidate.report.message);
  StatusOr<std::shared_ptr<const PlanFile>> file = PlanFile::open(options.output);
  std::error_code error; // the plan stays mapped
  std::filesystem::remove(options.output, error);
  if (!file.isOk())
    return file.status();
  DSPARK_ASSIGN_OR_RETURN(candidate.program, Program::create(std::move(*file)));
  return candidate;
}

CompileOptions CandidatePlans::optionsOf(const std::vector<int> &choices) const {
  CompileOptions made = options;
  for (size_t r = 0; r < regions.size(); ++r)
    if (choices[r] >= 0) {
      const PrecisionVariant &variant = regions[r].variants[size_t(choices[r])];
      made.precision[regions[r].node] = {variant.layout, variant.arithmetic, variant.mostRows};
      if (variant.isStatic())
        made.bytes = ByteMode::Apply;
    }
  made.ranges = ranges;
  return made;
}

StatusOr<std::unique_ptr<Session>> CandidatePlans::open(const std::vector<int> &choices) const {
  DSPARK_ASSIGN_OR_RETURN(Candidate candidate, compileCandidate(optionsOf(choices)));
  SessionOptions one;
  one.threads = 1;
  return Session::create(candidate.program, one);
}

StatusOr<double> CandidatePlans::errorOf(ErrorMetric metric, Session &session, size_t first,
                                         size_t last) const {
  std::vector<OutputNumbers> found, wanted;
  for (size_t set = first; set < last; ++set) {
    StatusOr<OutputNumbers> numbers = calibration.run(session, set);
    if (!numbers.isOk())
      return numbers.status();
    found.push_back(std::move(*numbers));
    wanted.push_back(expected[set]);
  }
  return outputError(metric, found, wanted);
}

StatusOr<double> CandidatePlans::ratio(Session &first, Session &second) const {
  using Clock = std::chrono::steady_clock;
  std::vector<double> ratios;
  bool isWarm = false;
  auto begin = Clock::now();
  while (ratios.size() < kMostTurns) {
    double seconds[2];
    for (int side = 0; side < 2; ++side) {
      auto start = Clock::now();
      for (size_t set = 0; set < calibration.deciding(); ++set)
        if (auto numbers = calibration.run(side == 0 ? first : second, set); !numbers.isOk())
          return numbers.status();
      seconds[side] = std::chrono::duration<double>(Clock::now() - start).count();
    }
    if (std::exchange(isWarm, true))
      ratios.push_back(seconds[0] / seconds[1]);
    double spent = std::chrono::duration<double>(Clock::now() - begin).count();
    if (ratios.size() >= kLeastTurns && spent > kTurnSeconds)
      break;
  }
  std::nth_element(ratios.begin(), ratios.begin() + long(ratios.size() / 2), ratios.end());
  return ratios[ratios.size() / 2];
}

} // namespace dspark
