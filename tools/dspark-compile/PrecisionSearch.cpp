#include "tools/dspark-compile/PrecisionSearch.h"
#include "tools/dspark-compile/ByteCalibration.h"
#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

namespace dspark {
namespace {

// Choices that are tried in the probe, where a try is a run, and as plans of their own. Budgets near each
// other give the same choices, so many more are solved for.
constexpr int kProbed = 5, kCompiled = 5, kSolved = 100;
// Where no plan gains: how often a smaller budget is tried, each so much of the last (half of the error).
constexpr int kSmaller = 2;
constexpr double kSmallerBy = 1.0 / 4;
constexpr double kGainSeconds = 20;
// One form everywhere is compiled if it is expected to be this much faster, as far as predictions err, and
// within the bound.
constexpr double kUniformTime = 1.05, kUniformError = 1.3;
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
  CompileOptions made = options;
  made.joinsSteps = request.joinsSteps;
  plans = std::make_unique<CandidatePlans>(made, std::move(ranges), probe->regions(), calibration,
                                           probe->expected());
  DSPARK_RETURN_IF_ERROR(probe->measure());
  values = precisionValues(candidate.report, probe->regions());
  return Status::ok();
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

// Until the bound is used by what `errorOf` says of the choices, or `most` choices were judged.
Status PrecisionSearch::walkBudgets(BudgetSearch &budget, int most, const JudgeChoices &errorOf) {
  const std::vector<PrecisionRegion> &regions = probe->regions();
  const std::vector<int> all = solvePrecision(regions, values, rule, kUnbounded);
  std::map<std::vector<int>, double> errors = {{plainChoices(), 0}};
  for (int solved = 0, judged = 0; solved < kSolved && judged < most; ++solved) {
    std::vector<int> choices = solvePrecision(regions, values, rule, budget.budget());
    auto known = errors.find(choices);
    if (known == errors.end()) {
      DSPARK_ASSIGN_OR_RETURN(double error, errorOf(choices));
      known = errors.emplace(choices, error).first;
      ++judged;
    }
    double found = request.bound.additive(known->second);
    if (budget.isNear(found) || (choices == all && known->second <= request.bound.most))
      break;
    budget.tell(found);
  }
  return Status::ok();
}

// The budget for expected errors that makes the probe's error come near the bound.
StatusOr<double> PrecisionSearch::expectedBudget(double allError) {
  double target = request.bound.additive(request.bound.most);
  double all = 0;
  std::vector<int> choices = solvePrecision(probe->regions(), values, rule, kUnbounded);
  for (size_t r = 0; r < choices.size(); ++r)
    all += shareOf(choices, r);
  if (allError <= request.bound.most && std::isfinite(all))
    return std::max(all, target);
  BudgetSearch budget(target, target);
  DSPARK_RETURN_IF_ERROR(walkBudgets(budget, kProbed, [&](const std::vector<int> &choices) {
    return probe->errorOf(request.bound.metric, choices, 0, calibration.deciding());
  }));
  return budget.budget();
}

StatusOr<PrecisionSearch::Tried> PrecisionSearch::tryOut(std::vector<int> choices) const {
  Tried tried;
  if (choices != plainChoices()) {
    DSPARK_ASSIGN_OR_RETURN(tried.session, plans->open(choices));
    ErrorMetric metric = request.bound.metric;
    size_t deciding = calibration.deciding();
    DSPARK_ASSIGN_OR_RETURN(tried.error, plans->errorOf(metric, *tried.session, 0, deciding));
    DSPARK_ASSIGN_OR_RETURN(tried.heldOutError,
                            plans->errorOf(metric, *tried.session, deciding, calibration.sets()));
  }
  tried.choices = std::move(choices);
  return tried;
}

// The plan of the largest budget whose true error keeps the bound.
StatusOr<PrecisionSearch::Tried> PrecisionSearch::search() {
  const std::vector<PrecisionRegion> &regions = probe->regions();
  rule.gains.assign(regions.size(), 1);
  std::vector<int> all = solvePrecision(regions, values, rule, kUnbounded);
  if (!request.only.empty())
    return tryOut(std::move(all));
  DSPARK_ASSIGN_OR_RETURN(double allError,
                          probe->errorOf(request.bound.metric, all, 0, calibration.deciding()));
  DSPARK_RETURN_IF_ERROR(measureGains(all, allError));
  DSPARK_ASSIGN_OR_RETURN(double first, expectedBudget(allError));
  BudgetSearch budget(request.bound.additive(request.bound.most), first);
  DSPARK_ASSIGN_OR_RETURN(Tried best, tryOut(plainChoices()));
  DSPARK_RETURN_IF_ERROR(
      walkBudgets(budget, kCompiled, [&](const std::vector<int> &choices) -> StatusOr<double> {
        DSPARK_ASSIGN_OR_RETURN(Tried tried, tryOut(choices));
        double worst = tried.worst();
        if (worst <= request.bound.most &&
            secondsOf(regions, values, choices) < secondsOf(regions, values, best.choices)) {
          best = std::move(tried);
          bestBudget = budget.budget();
        }
        return worst;
      }));
  return best;
}

// What regions were measured to gain may be lost between them; the fewer change, the less can be.
Status PrecisionSearch::trySmaller() {
  double budget = bestBudget;
  for (int i = 0; i < kSmaller && result.choices == plainChoices(); ++i) {
    budget *= kSmallerBy;
    DSPARK_ASSIGN_OR_RETURN(Tried tried, tryOut(solvePrecision(probe->regions(), values, rule, budget)));
    if (!tried.session || tried.worst() > request.bound.most)
      continue;
    std::vector<Tried> found;
    found.push_back(std::move(tried));
    DSPARK_RETURN_IF_ERROR(chooseFastest(std::move(found)));
  }
  return Status::ok();
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
  DSPARK_ASSIGN_OR_RETURN(Tried tried, tryOut(std::move(choices)));
  if (tried.session) {
    DSPARK_ASSIGN_OR_RETURN(result.speed, plans->ratio(*plain, *tried.session));
  }
  take(std::move(tried));
  return Status::ok();
}

std::vector<int> PrecisionSearch::uniform(const char *layout) const {
  return solvePrecision(probe->regions(), values, {layout, std::vector<double>(probe->regions().size(), 1)},
                        kUnbounded);
}

// What is the same everywhere, might be faster than all f32 and keeps the bound.
Status PrecisionSearch::addUniform(std::vector<Tried> &found) {
  double most = kUniformTime * secondsOf(probe->regions(), values, plainChoices());
  for (const char *form : kForms) {
    std::vector<int> choices = uniform(form);
    bool isNew = std::none_of(found.begin(), found.end(),
                              [&](const Tried &tried) { return tried.choices == choices; });
    if (!isNew || choices == plainChoices() || secondsOf(probe->regions(), values, choices) > most)
      continue;
    DSPARK_ASSIGN_OR_RETURN(double expected,
                            probe->errorOf(request.bound.metric, choices, 0, calibration.deciding()));
    if (!(expected <= kUniformError * request.bound.most))
      continue;
    DSPARK_ASSIGN_OR_RETURN(Tried tried, tryOut(std::move(choices)));
    if (tried.worst() > request.bound.most)
      continue;
    tried.isUniform = true;
    found.push_back(std::move(tried));
  }
  return Status::ok();
}

void PrecisionSearch::take(Tried tried) {
  result.choices = std::move(tried.choices);
  result.error = tried.error;
  result.heldOutError = tried.heldOutError;
}

// Of plans that keep the bound, and all f32. A mix must be as much faster than one form everywhere as than
// f32: the times that chose its forms were the least of several, some of them by luck.
Status PrecisionSearch::chooseFastest(std::vector<Tried> found) {
  DSPARK_ASSIGN_OR_RETURN(auto plain, plans->open(plainChoices()));
  Tried best = {plainChoices(), std::move(plain), 0, 0};
  std::unique_ptr<Session> f32;
  for (Tried &tried : found) {
    if (!tried.session)
      continue;
    DSPARK_ASSIGN_OR_RETURN(double gain, plans->ratio(*best.session, *tried.session));
    double least = !f32 ? 1 + kLeastGain : tried.isUniform && !best.isUniform ? 1 / (1 + kLeastGain) : 1;
    if (gain <= least && request.only.empty())
      continue;
    result.speed = gain;
    if (f32) {
      DSPARK_ASSIGN_OR_RETURN(result.speed, plans->ratio(*f32, *tried.session));
    } else {
      f32 = std::move(best.session);
    }
    best = std::move(tried);
  }
  if (result.speed > 1 || !request.only.empty())
    take(std::move(best));
  else
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
  result.f32Seconds = secondsOf(probe->regions(), values, plainChoices());
  result.seconds = secondsOf(probe->regions(), values, result.choices);
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
    std::vector<Tried> found;
    DSPARK_ASSIGN_OR_RETURN(Tried chosen, search.search());
    found.push_back(std::move(chosen));
    if (request.only.empty())
      DSPARK_RETURN_IF_ERROR(search.addUniform(found));
    DSPARK_RETURN_IF_ERROR(search.chooseFastest(std::move(found)));
    if (request.only.empty())
      DSPARK_RETURN_IF_ERROR(search.trySmaller());
  }
  if (!request.forced.empty())
    DSPARK_RETURN_IF_ERROR(search.applyRules());
  search.report();
  return std::move(search.result);
}

} // namespace dspark
