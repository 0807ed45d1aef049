#include "tools/dspark-compile/PrecisionSearch.h"
#include "planning/Assignment.h"
#include <algorithm>
#include <chrono>
#include <cmath>

namespace dspark {
namespace {

// A variant must be faster by more than measurements differ.
constexpr double kLeastGain = 0.03;
constexpr int kRounds = 6;
constexpr double kGainSeconds = 20;

std::string text(const char *pattern, auto... values) {
  char line[256];
  std::snprintf(line, sizeof line, pattern, values...);
  return line;
}

} // namespace

StatusOr<PrecisionSearch> PrecisionSearch::create(std::shared_ptr<const Program> program,
                                                  const PrecisionRequest &request, const CostModel &model) {
  PrecisionSearch search(request);
  search.program = program;
  DSPARK_ASSIGN_OR_RETURN(search.session, Session::create(program));
  DSPARK_ASSIGN_OR_RETURN(search.calibration, Calibration::create(*program, request.calibration));
  DSPARK_ASSIGN_OR_RETURN(search.result.regions, precisionRegions(*program, request.sensitive));
  search.meter = std::make_unique<PrecisionMeter>(search.result.regions, model);
  search.result.deciding = search.calibration.deciding();
  search.result.heldOut = search.calibration.heldOut();
  search.result.isSynthetic = search.calibration.isSynthetic();
  return search;
}

// The f32 results of all sets; the regions' variants on those that decide.
Status PrecisionSearch::measure() {
  for (size_t set = 0; set < calibration.sets(); ++set) {
    session->setObserver(set < calibration.deciding() ? meter.get() : nullptr);
    meter->setMode(PrecisionMeter::Mode::Measure);
    StatusOr<OutputNumbers> numbers = calibration.run(*session, set);
    session->setObserver(nullptr);
    if (!numbers.isOk())
      return numbers.status();
    expected.push_back(std::move(*numbers));
  }
  for (PrecisionRegion &region : result.regions) {
    region.seconds /= double(calibration.deciding());
    region.predicted /= double(calibration.deciding());
    for (PrecisionVariant &variant : region.variants) {
      variant.seconds /= double(calibration.deciding());
      variant.predicted /= double(calibration.deciding());
    }
  }
  return Status::ok();
}

StatusOr<double> PrecisionSearch::errorOf(const std::vector<int> &choices, size_t firstSet, size_t lastSet) {
  meter->setMode(PrecisionMeter::Mode::Simulate, choices);
  std::vector<OutputNumbers> found, wanted;
  session->setObserver(meter.get());
  for (size_t set = firstSet; set < lastSet; ++set) {
    StatusOr<OutputNumbers> numbers = calibration.run(*session, set);
    if (!numbers.isOk()) {
      session->setObserver(nullptr);
      return numbers.status();
    }
    found.push_back(std::move(*numbers));
    wanted.push_back(expected[set]);
  }
  session->setObserver(nullptr);
  return relativeError(found, wanted);
}

// Errors add up as squares: regions' rounding is independent. `budget` is that of the outputs' squared error.
std::vector<int> PrecisionSearch::solve(double budget) const {
  AssignmentProblem problem;
  problem.errorBudget = budget;
  std::vector<std::vector<int>> names;
  for (const PrecisionRegion &region : result.regions) {
    AssignedRegion &assigned = problem.regions.emplace_back();
    std::vector<int> &variants = names.emplace_back();
    bool isForced = !request.only.empty() && !region.isPinned;
    for (size_t v = 0; v < region.variants.size(); ++v) {
      const PrecisionVariant &variant = region.variants[v];
      double error = region.error(variant);
      bool isAllowed = isForced ? variant.layout.starts_with(request.only)
                                : variant.seconds < region.seconds * (1 - kLeastGain) && std::isfinite(error);
      if (!isAllowed)
        continue;
      assigned.variants.push_back(
          {0, variant.seconds, std::isfinite(error) ? gains[region.product] * error * error : 1e300, 0});
      variants.push_back(int(v));
    }
    if (!isForced || variants.empty()) {
      assigned.variants.push_back({0, region.seconds, 0, 0});
      variants.push_back(-1);
    }
  }
  AssignmentSolution solution = solveAssignment(problem);
  std::vector<int> choices;
  for (size_t r = 0; r < names.size(); ++r)
    choices.push_back(names[r][size_t(solution.variants[r])]);
  return choices;
}

// The region in fewer bits whose own error is largest.
int PrecisionSearch::worst() const {
  int found = -1;
  double most = -1;
  for (size_t r = 0; r < result.regions.size(); ++r)
    if (result.choices[r] >= 0) {
      double error = result.regions[r].error(result.regions[r].variants[size_t(result.choices[r])]);
      if (error > most) {
        most = error;
        found = int(r);
      }
    }
  return found;
}

Status PrecisionSearch::revertUntil(size_t firstSet, size_t lastSet, double &error) {
  for (;;) {
    DSPARK_ASSIGN_OR_RETURN(error, errorOf(result.choices, firstSet, lastSet));
    int region = worst();
    if (error <= request.maxError || region < 0 || !request.only.empty())
      return Status::ok();
    result.choices[size_t(region)] = -1;
  }
}

// Each region alone in its chosen form, as long as that takes seconds; what is left gets the gain that makes
// the sum of all regions' squared errors that of the run with all of them.
Status PrecisionSearch::measureGains(const std::vector<int> &choices, double allError) {
  auto squareOf = [&](size_t r) {
    return choices[r] < 0
               ? 0
               : std::pow(result.regions[r].error(result.regions[r].variants[size_t(choices[r])]), 2);
  };
  double squares = 0;
  for (size_t r = 0; r < choices.size(); ++r)
    squares += squareOf(r);
  bool isUsable = squares > 0 && std::isfinite(allError) && std::isfinite(squares);
  gains.assign(choices.size(), isUsable ? allError * allError / squares : 1);
  auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(kGainSeconds);
  for (size_t r = 0; r < choices.size() && std::chrono::steady_clock::now() < end; ++r) {
    if (choices[r] < 0 || squareOf(r) == 0)
      continue;
    std::vector<int> alone(choices.size(), -1);
    alone[r] = choices[r];
    DSPARK_ASSIGN_OR_RETURN(double error, errorOf(alone, 0, 1));
    if (std::isfinite(error) && error > 0 && std::isfinite(squareOf(r)))
      gains[r] = error * error / squareOf(r);
  }
  return Status::ok();
}

// The budget that makes the true error come near the bound is searched by trying: squared errors add up only
// about.
Status PrecisionSearch::search() {
  size_t last = calibration.deciding();
  gains.assign(result.regions.size(), 1);
  std::vector<int> all = solve(1e300);
  DSPARK_ASSIGN_OR_RETURN(double allError, errorOf(all, 0, last));
  result.choices = all;
  result.error = allError;
  if (allError <= request.maxError || !request.only.empty())
    return Status::ok();
  DSPARK_RETURN_IF_ERROR(measureGains(all, allError));
  double target = request.maxError * request.maxError, budget = target, low = 0, high = INFINITY;
  std::vector<int> best(all.size(), -1);
  double bestSeconds = INFINITY;
  auto secondsOf = [&](const std::vector<int> &choices) {
    double sum = 0;
    for (size_t r = 0; r < choices.size(); ++r)
      sum +=
          choices[r] < 0 ? result.regions[r].seconds : result.regions[r].variants[size_t(choices[r])].seconds;
    return sum;
  };
  for (int round = 0; round < kRounds && request.maxError > 0; ++round) {
    std::vector<int> choices = solve(budget);
    DSPARK_ASSIGN_OR_RETURN(double error, errorOf(choices, 0, last));
    if (error <= request.maxError) {
      low = budget;
      if (secondsOf(choices) < bestSeconds) {
        bestSeconds = secondsOf(choices);
        best = choices;
      }
      if (error > 0.9 * request.maxError)
        break;
    } else {
      high = budget;
    }
    budget = std::isfinite(high) ? (low > 0 ? std::sqrt(low * high) : high / 8)
                                 : budget * std::min(8.0, 0.9 * target / std::max(error * error, target / 8));
  }
  result.choices = best;
  return revertUntil(0, last, result.error);
}

std::string PrecisionSearch::reasonFor(size_t r) const {
  const PrecisionRegion &region = result.regions[r];
  if (region.isPinned)
    return "named by --sensitive";
  int fastest = -1;
  double own = result.choices[r] < 0 ? region.seconds : region.variants[size_t(result.choices[r])].seconds;
  for (size_t v = 0; v < region.variants.size(); ++v)
    if (int(v) != result.choices[r] &&
        (fastest < 0 || region.variants[v].seconds < region.variants[size_t(fastest)].seconds))
      fastest = int(v);
  if (fastest < 0)
    return "";
  const PrecisionVariant &other = region.variants[size_t(fastest)];
  if (other.seconds >= own * (1 - kLeastGain))
    return result.choices[r] >= 0 && region.seconds <= other.seconds
               ? text("f32: slower (%.1f us)", region.seconds * 1e6)
               : text("%s: not faster (%.1f us)", other.name().c_str(), other.seconds * 1e6);
  if (request.maxError == 0)
    return text("%s: %.1f us, but its error of %.2g is not loss-free", other.name().c_str(),
                other.seconds * 1e6, region.error(other));
  return text("%s: %.1f us, but an error of %.2g does not fit the bound", other.name().c_str(),
              other.seconds * 1e6, region.error(other));
}

StatusOr<PrecisionResult> PrecisionSearch::run() {
  DSPARK_RETURN_IF_ERROR(measure());
  result.choices.assign(result.regions.size(), -1);
  if (request.maxError > 0 || !request.only.empty())
    DSPARK_RETURN_IF_ERROR(search());
  if (calibration.heldOut() > 0) {
    DSPARK_RETURN_IF_ERROR(revertUntil(calibration.deciding(), calibration.sets(), result.heldOutError));
    DSPARK_ASSIGN_OR_RETURN(result.error, errorOf(result.choices, 0, calibration.deciding()));
  }
  result.isMet = request.maxError == 0 || std::max(result.error, result.heldOutError) <= request.maxError;
  result.limiting = result.isMet ? -1 : worst();
  for (size_t r = 0; r < result.regions.size(); ++r) {
    const PrecisionRegion &region = result.regions[r];
    result.f32Seconds += region.seconds;
    result.seconds +=
        result.choices[r] < 0 ? region.seconds : region.variants[size_t(result.choices[r])].seconds;
    result.reasons.push_back(reasonFor(r));
  }
  return std::move(result);
}

} // namespace dspark
