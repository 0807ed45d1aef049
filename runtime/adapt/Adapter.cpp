#include "runtime/adapt/Adapter.h"
#include <algorithm>
#include <cmath>

namespace dspark {
namespace {

constexpr double kFailed = 1e9;    // seconds of a variant whose resource has failed
constexpr double kWorthIt = 1.5;   // explored: what is predicted to be less than that much slower
constexpr double kSurprise = 1.25; // first measured: what is slower than predicted by more than models err
constexpr uint64_t kOld = 300;     // runs after which a measurement may be out of date
constexpr int kMostPatience = 6;   // doublings of the time between canaries of what fails again and again
constexpr double kNews = 0.05;     // change of an estimate that asks the solver again
constexpr int kLooks = 10;         // for something to explore, in the time after which it is due

} // namespace

Adapter::Adapter(AssignmentProblem initial, AdaptOptions options)
    : problem(std::move(initial)), options(options), resources(size_t(problem.devices)),
      nextExplored(uint64_t(options.exploreEvery)) {}

int Adapter::resourceOf(size_t region, int variant) const {
  return problem.regions[region].variants[size_t(variant)].device;
}

void Adapter::seed(int64_t key, AssignmentProblem predicted) {
  buckets[key] = {};
  buckets[key].problem = std::move(predicted);
}

// As if it had been measured here.
void Adapter::recall(Bucket &bucket, const LearnedBucket &learned) {
  for (size_t r = 0; r < bucket.estimates.size(); ++r)
    for (size_t v = 0; v < bucket.estimates[r].size(); ++v)
      for (size_t i = 0; i < Estimate::kEnough && learned.seconds[r][v] > 0; ++i)
        bucket.estimates[r][v].add(learned.seconds[r][v]);
  bucket.current = learned.current;
  bucket.ratio = ratioOf(bucket);
}

void Adapter::learn(const LearnedBucket &learned) {
  bool fits =
      learned.seconds.size() == problem.regions.size() && learned.current.size() == problem.regions.size();
  for (size_t r = 0; fits && r < problem.regions.size(); ++r) {
    size_t variants = problem.regions[r].variants.size();
    fits = learned.seconds[r].size() == variants && learned.current[r] >= 0 &&
           size_t(learned.current[r]) < variants;
  }
  if (fits)
    known[learned.bucket] = learned;
}

std::vector<LearnedBucket> Adapter::learned() const {
  std::vector<LearnedBucket> list;
  for (const auto &[key, bucket] : buckets) {
    if (bucket.current.empty())
      continue;
    LearnedBucket &entry = list.emplace_back(LearnedBucket{key, {}, bucket.current});
    for (const std::vector<Estimate> &estimates : bucket.estimates) {
      std::vector<double> &seconds = entry.seconds.emplace_back();
      for (const Estimate &estimate : estimates)
        seconds.push_back(estimate.isMeasured() ? estimate.undisturbed() : 0);
    }
  }
  for (const auto &[key, entry] : known)
    if (!buckets.contains(key) || buckets.at(key).current.empty())
      list.push_back(entry);
  return list;
}

Adapter::Bucket &Adapter::bucketOf(int64_t key) {
  auto [it, isNew] = buckets.try_emplace(key);
  Bucket &bucket = it->second;
  if (isNew)
    bucket.problem = problem;
  if (bucket.estimates.empty()) {
    for (const AssignedRegion &region : bucket.problem.regions) {
      std::vector<Estimate> &estimates = bucket.estimates.emplace_back();
      for (const RegionVariant &variant : region.variants)
        estimates.emplace_back(variant.seconds);
      bucket.measuredAt.emplace_back(region.variants.size(), 0);
    }
    if (auto found = known.find(key); found != known.end())
      recall(bucket, found->second);
    bucket.current = solveAssignment(estimated(bucket)).variants;
  }
  return bucket;
}

// How much slower than predicted this machine is: the median over the regions of what runs now.
double Adapter::ratioOf(const Bucket &bucket) const {
  std::vector<double> ratios;
  for (size_t r = 0; r < bucket.current.size(); ++r) {
    const Estimate &now = bucket.estimates[r][size_t(bucket.current[r])];
    if (now.isMeasured() && now.predicted() > 0)
      ratios.push_back(now.measured() / now.predicted() /
                       resources[size_t(resourceOf(r, bucket.current[r]))].slowdown);
  }
  if (ratios.empty())
    return 1;
  std::nth_element(ratios.begin(), ratios.begin() + ptrdiff_t(ratios.size() / 2), ratios.end());
  return ratios[ratios.size() / 2];
}

// Marked resources are as slow as they were found.
double Adapter::estimateOf(const Bucket &bucket, size_t region, size_t variant) const {
  const Resource &resource = resources[size_t(resourceOf(region, int(variant)))];
  if (resource.hasFailed)
    return kFailed;
  const Estimate &estimate = bucket.estimates[region][variant];
  return estimate.isMeasured() ? estimate.measured()
                               : estimate.predicted() * bucket.ratio * resource.slowdown;
}

const AssignmentProblem &Adapter::estimated(Bucket &bucket) const {
  AssignmentProblem &now = bucket.problem;
  now.deviceBytes = problem.deviceBytes;
  for (size_t r = 0; r < now.regions.size(); ++r)
    for (size_t v = 0; v < now.regions[r].variants.size(); ++v)
      now.regions[r].variants[v].seconds = estimateOf(bucket, r, v);
  return now;
}

void Adapter::switchTo(Bucket &bucket, const std::vector<int> &to, const char *reason, double from,
                       double seconds) {
  log.push_back({run, currentKey, reason, "", bucket.current, to, from, seconds});
  ++switched;
  bucket.current = to;
  bucket.lost = 0;
  bucket.isSettled = false;
}

// Of what runs now, without what crosses: tells whether anything has changed.
double Adapter::levelOf(const Bucket &bucket) const {
  double sum = 0;
  for (size_t r = 0; r < bucket.current.size(); ++r)
    sum += estimateOf(bucket, r, size_t(bucket.current[r]));
  return sum;
}

// The share of that level which more measurements may take away. Twice, since what is compared with it is in
// doubt, too.
double Adapter::doubtOf(const Bucket &bucket, double level) const {
  double sum = 0;
  for (size_t r = 0; r < bucket.current.size(); ++r)
    sum += bucket.estimates[r][size_t(bucket.current[r])].doubt();
  return level > 0 ? 2 * sum / level : 0;
}

// In most runs nothing has changed, and nothing is solved. A gain is weighed like a purchase against rent: a
// switch is made when staying has cost as much as it does.
void Adapter::reconsider(Bucket &bucket, const char *reason, bool atOnce) {
  double level = levelOf(bucket);
  bool isNews = std::fabs(level - bucket.solvedAt) > kNews * bucket.solvedAt;
  bool mustSolve = bucket.isStale || isNews || atOnce;
  if (!mustSolve && bucket.lost == 0 && run < bucket.weighedAt + Estimate::kWindow)
    return;
  bucket.weighedAt = run;
  bucket.ratio = ratioOf(bucket);
  const AssignmentProblem &now = estimated(bucket);
  if (mustSolve) {
    bucket.favourite = solveAssignment(now).variants;
    bucket.solvedAt = level;
    bucket.isStale = false;
  }
  if (bucket.favourite == bucket.current) {
    bucket.lost = 0;
    return;
  }
  AssignmentSolution current = evaluateAssignment(now, bucket.current);
  AssignmentSolution best = evaluateAssignment(now, bucket.favourite);
  double gain = current.isFeasible ? 1 - best.seconds / current.seconds : best.isFeasible ? 1 : 0;
  double least = std::clamp(doubtOf(bucket, level), options.leastGain, options.gain);
  bucket.lost = gain >= least ? bucket.lost + std::min(gain / options.gain, 1.0) : 0;
  if ((atOnce && gain >= options.gain) || bucket.lost >= options.patience)
    switchTo(bucket, bucket.favourite, reason, current.seconds, best.seconds);
}

// One region's alternative, if none was explored for a while: the most promising of those not measured yet.
void Adapter::explore(Bucket &bucket) {
  if (run < nextExplored)
    return;
  nextExplored = run + uint64_t(std::max(1, options.exploreEvery / kLooks));
  bucket.ratio = ratioOf(bucket);
  double most = 0;
  size_t region = 0, variant = 0;
  for (size_t r = 0; r < problem.regions.size(); ++r) {
    double now = estimateOf(bucket, r, size_t(bucket.current[r]));
    for (size_t v = 0; v < problem.regions[r].variants.size(); ++v) {
      const Resource &resource = resources[size_t(resourceOf(r, int(v)))];
      double other = estimateOf(bucket, r, v);
      const Estimate &estimate = bucket.estimates[r][v];
      bool isOld = run > bucket.measuredAt[r][v] + kOld;
      if (estimate.isMeasured() && isOld) // the state it was measured in may be gone
        other = std::min(other, estimate.predicted() * bucket.ratio);
      bool isOpen = int(v) != bucket.current[r] && !resource.isMarked && (!estimate.isMeasured() || isOld);
      if (isOpen && other < now * kWorthIt && now / other > most) {
        most = now / other;
        region = r;
        variant = v;
      }
    }
  }
  if (most == 0)
    return;
  std::vector<int> trial = bucket.current;
  trial[region] = int(variant);
  if (!evaluateAssignment(estimated(bucket), trial).isFeasible)
    return;
  bucket.planned = std::move(trial);
  nextExplored = run + uint64_t(options.exploreEvery);
}

const std::vector<int> &Adapter::next(int64_t key) {
  currentKey = key;
  Bucket &bucket = bucketOf(key);
  ++run;
  bucket.planned = bucket.current;
  explore(bucket);
  isMeasuring = hasNews(bucket) || run >= bucket.measuredLast + uint64_t(options.measureEvery);
  return bucket.planned;
}

// Something has changed, or may be about to.
bool Adapter::hasNews(const Bucket &bucket) const {
  bool isMarked =
      std::any_of(resources.begin(), resources.end(), [](const Resource &one) { return one.isMarked; });
  return isMarked || !bucket.isSettled || bucket.isStale || bucket.lost > 0 ||
         bucket.planned != bucket.current;
}

// True if that makes measurements enough to replace the prediction. What was explored again and is not as it
// was may change the choice, too.
bool Adapter::measure(Bucket &bucket, size_t region, double seconds) {
  size_t variant = size_t(bucket.planned[region]);
  Estimate &estimate = bucket.estimates[region][variant];
  bool wasMeasured = estimate.isMeasured();
  double before = estimate.measured();
  estimate.add(seconds, resources[size_t(resourceOf(region, int(variant)))].isMarked);
  bucket.measuredAt[region][variant] = run;
  bool isNew = !wasMeasured && estimate.isMeasured();
  bool isOther = wasMeasured && int(variant) != bucket.current[region] &&
                 std::fabs(estimate.measured() - before) > kNews * before;
  bucket.isStale |= isNew || isOther;
  return isNew;
}

void Adapter::report(const std::vector<double> &seconds) {
  Bucket &bucket = bucketOf(currentKey);
  bool hasDrifted = false;
  for (size_t r = 0; r < seconds.size(); ++r) {
    Estimate &estimate = bucket.estimates[r][size_t(bucket.planned[r])];
    bool isNew = measure(bucket, r, seconds[r]);
    Resource &resource = resources[size_t(resourceOf(r, bucket.planned[r]))];
    double expected = estimate.predicted() * bucket.ratio;
    bool isSurprise = isNew && !resource.isMarked && estimate.measured() > kSurprise * expected;
    if (!isSurprise && !estimate.hasDrifted())
      continue;
    hasDrifted = true;
    if (isSurprise)
      estimate.suspect();
    double slowdown = isSurprise ? estimate.measured() / expected : estimate.acceptDrift();
    if (!resource.isMarked)
      resource = {true, false, false, 1, run, resource.faults};
    resource.slowdown = std::max(resource.slowdown, slowdown);
  }
  // The other regions of a slow resource wait for their own measurements no longer.
  if (hasDrifted)
    for (size_t r = 0; r < seconds.size(); ++r) {
      Estimate &estimate = bucket.estimates[r][size_t(bucket.planned[r])];
      if (resources[size_t(resourceOf(r, bucket.planned[r]))].isMarked && estimate.isMeasured() &&
          seconds[r] > estimate.measured() * 1.5)
        estimate.acceptDrift();
    }
  bucket.measuredLast = run;
  bucket.isSettled = true;
  for (size_t r = 0; r < bucket.planned.size() && bucket.isSettled; ++r)
    bucket.isSettled = bucket.estimates[r][size_t(bucket.planned[r])].isSettled();
  reconsider(bucket, hasDrifted ? "drift" : "faster", hasDrifted);
}

bool Adapter::fault(size_t region) {
  Bucket &bucket = bucketOf(currentKey);
  Resource &failed = resources[size_t(resourceOf(region, bucket.planned[region]))];
  failed = {true, true, true, 1, run, failed.faults + 1};
  for (auto &[key, other] : buckets) {
    if (other.current.empty()) // seeded, never run
      continue;
    other.isStale = true;
    const AssignmentProblem &now = estimated(other);
    AssignmentSolution best = solveAssignment(now);
    if (best.variants != other.current)
      switchTo(other, best.variants, "fault", evaluateAssignment(now, other.current).seconds, best.seconds);
  }
  bucket.planned = bucket.current;
  return evaluateAssignment(estimated(bucket), bucket.current).seconds < kFailed;
}

void Adapter::setDeviceBytes(std::vector<double> bytes) {
  problem.deviceBytes = std::move(bytes);
  int64_t key = currentKey;
  for (auto &[other, bucket] : buckets) {
    if (bucket.current.empty())
      continue;
    currentKey = other;
    bucket.isStale = true;
    if (!evaluateAssignment(estimated(bucket), bucket.current).isFeasible)
      reconsider(bucket, "memory", true);
  }
  currentKey = key;
}

// Estimates of all buckets have changed.
void Adapter::forgetSolutions() {
  for (auto &[key, bucket] : buckets)
    bucket.isStale = true;
}

// The one that is overdue for longest: two that were marked together take turns.
std::optional<int> Adapter::canary() const {
  std::optional<int> next;
  uint64_t most = 0;
  for (size_t i = 0; i < resources.size(); ++i) {
    const Resource &resource = resources[i];
    uint64_t every = uint64_t(options.canaryEvery) << std::clamp(resource.faults - 1, 0, kMostPatience);
    if (!resource.isMarked || run < resource.tried + every || (next && run - resource.tried <= most))
      continue;
    next = int(i);
    most = run - resource.tried;
  }
  return next;
}

void Adapter::reportCanary(int index, double ratio) {
  Resource &resource = resources[size_t(index)];
  resource.tried = run;
  if (!resource.isMarked || !(ratio <= options.recovered)) {
    resource.isConfirmed = true;
    if (std::isfinite(ratio) && resource.hasFailed && ratio <= options.recovered * 2) {
      resource.hasFailed = false;
      forgetSolutions();
    }
    return;
  }
  // A resource that no canary found slow is as it was: what was measured there is the truth.
  bool wasSlow = resource.isConfirmed;
  int faults = resource.faults;
  resource = {};
  resource.faults = faults;
  forgetSolutions();
  if (!wasSlow)
    return;
  int64_t key = currentKey;
  for (auto &[other, bucket] : buckets) {
    if (bucket.current.empty())
      continue;
    for (size_t r = 0; r < bucket.estimates.size(); ++r)
      for (size_t v = 0; v < bucket.estimates[r].size(); ++v)
        if (resourceOf(r, int(v)) == index)
          bucket.estimates[r][v].restore();
    currentKey = other;
    reconsider(bucket, "recovered", true);
  }
  currentKey = key;
}

} // namespace dspark
