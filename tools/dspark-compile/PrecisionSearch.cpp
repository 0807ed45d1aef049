#include "tools/dspark-compile/PrecisionSearch.h"
#include "tools/dspark-compile/ByteCalibration.h"
#include <algorithm>
#include <chrono>
#include <cmath>

namespace dspark {
namespace {

constexpr int kRounds = 6;
constexpr double kGainSeconds = 20;
constexpr const char *kForms[] = {kStaticInt8, "int8_g", "f16", "bf16", "int4"};

std::string text(const char *pattern, auto... values) {
  char line[256];
  std::snprintf(line, sizeof line, pattern, values...);
  return line;
}

} // namespace

// Two plans beside the plain one: one that shows the values that may become bytes, and the probe.
Status PrecisionSearch::prepare(const Program &plain, const CompileOptions &options, const CostModel &model) {
  DSPARK_ASSIGN_OR_RETURN(calibration, Calibration::create(plain, request.calibration));
  CompileOptions observe = options;
  observe.bytes = ByteMode::Observe;
  DSPARK_ASSIGN_OR_RETURN(Candidate candidate, compileCandidate(observe));
  std::vector<ByteRange> ranges;
  if (!candidate.report.contractions.empty()) {
    DSPARK_ASSIGN_OR_RETURN(auto session, Session::create(candidate.program));
    size_t values = candidate.program->outputs().size() - plain.outputs().size();
    DSPARK_ASSIGN_OR_RETURN(ranges, observeRanges(*session, calibration, values));
    CompileOptions compare = options;
    compare.bytes = ByteMode::Compare;
    compare.ranges = ranges;
    DSPARK_ASSIGN_OR_RETURN(candidate, compileCandidate(compare));
  }
  DSPARK_ASSIGN_OR_RETURN(probe, PrecisionProbe::create(candidate.program, candidate.report, calibration,
                                                        request.sensitive, model));
  plans = std::make_unique<CandidatePlans>(options, std::move(ranges), probe->regions(), calibration,
                                           probe->expected());
  return probe->measure();
}

// What a region's choice adds to the outputs' error, as far as errors add up.
double PrecisionSearch::shareOf(const std::vector<int> &choices, size_t r) const {
  if (choices[r] < 0)
    return 0;
  const PrecisionRegion &region = probe->regions()[r];
  double error = region.error(region.variants[size_t(choices[r])]);
  return (rule.gains.empty() ? 1 : rule.gains[r]) * error * error;
}

// Each region alone in its chosen form, as long as that takes seconds; what is left gets the gain that makes
// the sum of all regions' shares that of the run with all of them.
Status PrecisionSearch::measureGains(const std::vector<int> &choices, double allError) {
  rule.gains.assign(choices.size(), 1);
  double squares = 0;
  for (size_t r = 0; r < choices.size(); ++r)
    squares += shareOf(choices, r);
  bool isUsable = squares > 0 && std::isfinite(allError) && std::isfinite(squares);
  std::vector<double> gains(choices.size(), isUsable ? request.bound.additive(allError) / squares : 1);
  auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(kGainSeconds);
  for (size_t r = 0; r < choices.size() && std::chrono::steady_clock::now() < end; ++r) {
    double square = shareOf(choices, r);
    if (square == 0 || !std::isfinite(square))
      continue;
    std::vector<int> alone = plainChoices();
    alone[r] = choices[r];
    DSPARK_ASSIGN_OR_RETURN(double error, probe->errorOf(request.bound.metric, alone, 0, 1));
    if (std::isfinite(error) && error > 0)
      gains[r] = request.bound.additive(error) / square;
  }
  rule.gains = std::move(gains);
  return Status::ok();
}

// The budget that makes the probe's error come near the bound is searched by trying: errors add up only
// about.
StatusOr<std::vector<int>> PrecisionSearch::search() {
  const std::vector<PrecisionRegion> &regions = probe->regions();
  size_t last = calibration.deciding();
  rule.gains.assign(regions.size(), 1);
  std::vector<int> all = solvePrecision(regions, rule, 1e300);
  if (!request.only.empty())
    return all;
  DSPARK_ASSIGN_OR_RETURN(double allError, probe->errorOf(request.bound.metric, all, 0, last));
  DSPARK_RETURN_IF_ERROR(measureGains(all, allError));
  if (allError <= request.bound.most)
    return all;
  double target = request.bound.additive(request.bound.most), budget = target, low = 0, high = INFINITY;
  std::vector<int> best = plainChoices();
  for (int round = 0; round < kRounds; ++round) {
    std::vector<int> choices = solvePrecision(regions, rule, budget);
    DSPARK_ASSIGN_OR_RETURN(double error, probe->errorOf(request.bound.metric, choices, 0, last));
    double share = request.bound.additive(error);
    if (error <= request.bound.most) {
      low = budget;
      if (secondsOf(regions, choices) < secondsOf(regions, best))
        best = choices;
      if (share > 0.8 * target)
        break;
    } else {
      high = budget;
    }
    budget = std::isfinite(high) ? (low > 0 ? std::sqrt(low * high) : high / 8)
                                 : budget * std::min(8.0, 0.9 * target / std::max(share, target / 8));
  }
  return best;
}

// Regions that do most go back to f32, so many that what is left would just meet the bound.
void PrecisionSearch::revert(std::vector<int> &choices, double error) const {
  std::vector<size_t> order;
  double sum = 0;
  for (size_t r = 0; r < choices.size(); ++r)
    if (choices[r] >= 0) {
      order.push_back(r);
      sum += shareOf(choices, r);
    }
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return shareOf(choices, a) > shareOf(choices, b); });
  double allowed = 0.95 * sum * request.bound.additive(request.bound.most) / request.bound.additive(error);
  for (size_t r : order) {
    sum -= shareOf(choices, r);
    choices[r] = -1;
    if (sum <= allowed) // not with a sum that is infinite or NaN
      break;
  }
}

// Takes these choices, with as many reverted as the bound demands, if their plan is the fastest so far.
Status PrecisionSearch::accept(std::vector<int> choices, Session &plain) {
  bool isForced = !request.only.empty();
  for (;;) {
    if (choices == plainChoices())
      return Status::ok();
    DSPARK_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, plans->open(choices));
    DSPARK_ASSIGN_OR_RETURN(double error,
                            plans->errorOf(request.bound.metric, *session, 0, calibration.deciding()));
    DSPARK_ASSIGN_OR_RETURN(double heldOut, plans->errorOf(request.bound.metric, *session,
                                                           calibration.deciding(), calibration.sets()));
    if (!isForced && !(std::max(error, heldOut) <= request.bound.most)) {
      revert(choices, std::max(error, heldOut));
      continue;
    }
    DSPARK_ASSIGN_OR_RETURN(double gain, plans->ratio(best ? *best : plain, *session));
    if (isForced || gain > (best ? 1 : 1 + kLeastGain)) {
      best = std::move(session);
      result.choices = std::move(choices);
      result.error = error;
      result.heldOutError = heldOut;
    }
    return Status::ok();
  }
}

// Whatever the bound; it is judged with them.
Status PrecisionSearch::applyRules() {
  std::vector<int> choices = result.choices;
  for (const auto &[location, form] : request.forced) {
    size_t r = 0;
    while (r < choices.size() && !holdsName(location, probe->regions()[r].node))
      ++r;
    if (r == choices.size())
      return invalidArgument("node '" + location + "' shall have precision '" + form +
                             "', and is no product or convolution whose precision can be chosen");
    choices[r] = probe->regions()[r].variantNamed(form);
    if (choices[r] >= 0)
      continue;
    std::string known = "f32";
    for (const PrecisionVariant &variant : probe->regions()[r].variants)
      known += ", " + variant.name();
    return invalidArgument("node '" + location + "' shall have precision '" + form + "', expected " + known);
  }
  DSPARK_ASSIGN_OR_RETURN(auto plain, plans->open(plainChoices()));
  DSPARK_ASSIGN_OR_RETURN(auto session, plans->open(choices));
  ErrorMetric metric = request.bound.metric;
  size_t deciding = calibration.deciding();
  DSPARK_ASSIGN_OR_RETURN(result.error, plans->errorOf(metric, *session, 0, deciding));
  DSPARK_ASSIGN_OR_RETURN(result.heldOutError,
                          plans->errorOf(metric, *session, deciding, calibration.sets()));
  DSPARK_ASSIGN_OR_RETURN(result.speed, plans->ratio(*plain, *session));
  result.choices = std::move(choices);
  return Status::ok();
}

std::vector<int> PrecisionSearch::uniform(const char *layout) const {
  return solvePrecision(probe->regions(), {layout, std::vector<double>(probe->regions().size(), 1)}, 1e300);
}

// What the solver chose, and what is the same everywhere and might be faster than all f32.
std::vector<std::vector<int>> PrecisionSearch::candidates(const std::vector<int> &chosen) const {
  std::vector<std::vector<int>> found{chosen};
  double plainSeconds = secondsOf(probe->regions(), plainChoices());
  for (const char *form : kForms) {
    std::vector<int> choices = uniform(form);
    bool isNew = std::find(found.begin(), found.end(), choices) == found.end();
    if (request.only.empty() && isNew && secondsOf(probe->regions(), choices) < plainSeconds)
      found.push_back(std::move(choices));
  }
  return found;
}

Status PrecisionSearch::confirm(std::vector<int> choices) {
  DSPARK_ASSIGN_OR_RETURN(auto plain, plans->open(plainChoices()));
  for (std::vector<int> &candidate : candidates(choices))
    DSPARK_RETURN_IF_ERROR(accept(std::move(candidate), *plain));
  if (!best)
    return Status::ok();
  DSPARK_ASSIGN_OR_RETURN(result.speed, plans->ratio(*plain, *best));
  if (result.speed > 1 || !request.only.empty())
    return Status::ok();
  result.choices = plainChoices();
  result.error = result.heldOutError = 0;
  result.speed = 1;
  return Status::ok();
}

std::string PrecisionSearch::reasonFor(size_t r) const {
  const PrecisionRegion &region = result.regions[r];
  if (!region.pinnedBecause.empty())
    return region.pinnedBecause;
  for (const auto &[location, form] : request.forced)
    if (holdsName(location, region.node))
      return "a rule wants this form";
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
  if (request.bound.most == 0)
    return text("%s: %.1f us, but its error of %.2g is not loss-free", other.name().c_str(),
                other.seconds * 1e6, region.error(other));
  if (other.isStatic() && other.seconds + region.quantizeSeconds >= own * (1 - kLeastGain))
    return text("%s: %.1f us, but quantising takes %.1f us", other.name().c_str(), other.seconds * 1e6,
                region.quantizeSeconds * 1e6);
  return text("%s: %.1f us, but an error of %.2g does not fit the bound", other.name().c_str(),
              other.seconds * 1e6, region.error(other));
}

void PrecisionSearch::report() {
  result.bound = request.bound;
  result.deciding = calibration.deciding();
  result.heldOut = calibration.heldOut();
  result.isSynthetic = calibration.isSynthetic();
  result.isMet = request.bound.most == 0 || std::max(result.error, result.heldOutError) <= request.bound.most;
  result.options = plans->optionsOf(result.choices);
  result.f32Seconds = secondsOf(probe->regions(), plainChoices());
  result.seconds = secondsOf(probe->regions(), result.choices);
  if (!result.isMet)
    for (size_t r = 0; r < result.choices.size(); ++r)
      if (result.limiting < 0 ||
          shareOf(result.choices, r) > shareOf(result.choices, size_t(result.limiting)))
        result.limiting = int(r);
  result.regions = std::move(probe->regions());
  for (size_t r = 0; r < result.regions.size(); ++r)
    result.reasons.push_back(reasonFor(r));
}

StatusOr<PrecisionResult> PrecisionSearch::run(const Program &plain, const CompileOptions &options,
                                               const PrecisionRequest &request, const CostModel &model) {
  PrecisionSearch search(request);
  search.rule.only = request.only;
  DSPARK_RETURN_IF_ERROR(search.prepare(plain, options, model));
  search.result.choices = search.plainChoices();
  if (request.bound.most > 0 || !request.only.empty()) {
    DSPARK_ASSIGN_OR_RETURN(std::vector<int> choices, search.search());
    DSPARK_RETURN_IF_ERROR(search.confirm(std::move(choices)));
  }
  if (!request.forced.empty())
    DSPARK_RETURN_IF_ERROR(search.applyRules());
  search.report();
  return std::move(search.result);
}

} // namespace dspark
