#include "tools/dspark-compile/CandidatePlans.h"
#include <algorithm>
#include <chrono>
#include <filesystem>

namespace dspark {
namespace {

// Turns of a comparison: as many as fit into the time, within these.
constexpr size_t kLeastTurns = 7, kMostTurns = 201;
constexpr double kTurn = 0.02, kCompareSeconds = 1.5;

double medianOf(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + long(values.size() / 2), values.end());
  return values[values.size() / 2];
}

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

// Median seconds of a pass over the deciding sets. The first pass of a turn meets caches that the other plan
// has left, which no pass does where a plan runs alone; it counts where a pass is longer than a turn.
StatusOr<double> CandidatePlans::turn(Session &session) const {
  using Clock = std::chrono::steady_clock;
  std::vector<double> passes;
  for (double spent = 0; spent < kTurn; spent += passes.back()) {
    auto start = Clock::now();
    for (size_t set = 0; set < calibration.deciding(); ++set)
      if (auto numbers = calibration.run(session, set); !numbers.isOk())
        return numbers.status();
    passes.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  if (passes.size() > 1)
    passes.erase(passes.begin());
  return medianOf(std::move(passes));
}

StatusOr<double> CandidatePlans::ratio(Session &first, Session &second) const {
  using Clock = std::chrono::steady_clock;
  for (Session *session : {&first, &second}) {
    DSPARK_ASSIGN_OR_RETURN([[maybe_unused]] double cold, turn(*session));
  }
  std::vector<double> ratios;
  auto end = Clock::now() + std::chrono::duration<double>(kCompareSeconds);
  while (ratios.size() < kLeastTurns || (ratios.size() < kMostTurns && Clock::now() < end)) {
    DSPARK_ASSIGN_OR_RETURN(double one, turn(first));
    DSPARK_ASSIGN_OR_RETURN(double other, turn(second));
    ratios.push_back(one / other);
  }
  return medianOf(std::move(ratios));
}

} // namespace dspark
