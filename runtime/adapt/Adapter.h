// Chooses among the variants of a plan's regions while it runs. Between runs only: after a run the caller
// reports what every region took, and gets the variants of the next. Pure logic, without clocks or threads.
//
//   estimate   per (shape bucket, region, variant): predicted until measured, then the least of a window
//   switch     when staying has cost enough: the assignment that the solver finds for the estimates,
//   transfers
//              and casts included, is 10 % faster for four runs in a row, or less for as many more. Gains
//              that noise in the estimates may feign do not count
//   explore    at most 1 % of the runs take one region's alternative that was never measured enough
//   rest       while nothing is new, one run in four is measured
//   drift      a variant that has become slower marks its resource (device, cores); while a resource is
//              marked the caller is asked for a small canary on it from time to time, and when canaries are
//              as fast as before, what was known before the drift counts again
//   fault      a variant that failed is left at once and its resource only returns by a canary
//
// Every variant was validated when the plan was compiled, so no choice leaves the error bound.
#pragma once
#include "planning/Assignment.h"
#include "runtime/adapt/Estimate.h"
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace dspark {

struct AdaptOptions {
  double gain = 0.10;      // of the whole, for which a change of the machine is answered at once
  double leastGain = 0.04; // below which nothing is switched
  double patience = 4;     // runs with that gain before a switch; with half of it twice as many
  int exploreEvery = 100;
  int measureEvery = 4;   // runs, while all estimates are settled
  int canaryEvery = 5;    // runs, of a marked resource
  double recovered = 1.3; // canary time over its usual, below which a resource is as before
};

/// One change of the plan, for a log.
struct AdaptEvent {
  uint64_t run = 0;
  int64_t bucket = 0;
  std::string reason;                    // "faster", "drift", "fault", "memory", "recovered"
  std::string detail;                    // of a fault: what the device said
  std::vector<int> from, to;             // variants per region; equal where only a mark changed
  double fromSeconds = 0, toSeconds = 0; // both estimates
};

/// What runs have taught about one bucket.
struct LearnedBucket {
  int64_t bucket = 0;
  std::vector<std::vector<double>> seconds; // per region, variant: measured; 0: not
  std::vector<int> current;                 // variants per region
};

class Adapter {
public:
  /// `problem`: predicted seconds; a variant's device is the resource that it needs.
  explicit Adapter(AssignmentProblem problem, AdaptOptions options = {});

  /// Other predictions for shapes of that bucket, before its first next(). Regions, variants and devices are
  /// those of the constructor's problem; memory limits stay common.
  void seed(int64_t bucket, AssignmentProblem problem);

  /// The variants of the next run with shapes of that bucket.
  const std::vector<int> &next(int64_t bucket);
  /// Whether report() is wanted of the run that next() was asked for.
  bool measures() const { return isMeasuring; }
  /// What the regions took in the run that next() was asked for.
  void report(const std::vector<double> &seconds);
  /// A region's variant could not run; next() has a way without its resource. Without any, false.
  bool fault(size_t region);
  /// A device has more or less memory than before (bytes of variants must fit).
  void setDeviceBytes(std::vector<double> bytes);

  /// The resource that wants a canary before the next run, if any.
  std::optional<int> canary() const;
  /// How long the canary took in units of what it took when nothing was wrong; infinite if it failed.
  void reportCanary(int resource, double ratio);

  /// For another Adapter of the same problem: after seed() and before the bucket's first next().
  std::vector<LearnedBucket> learned() const;
  void learn(const LearnedBucket &bucket);

  /// All changes so far; the caller may take them away.
  std::vector<AdaptEvent> &events() { return log; }
  uint64_t switches() const { return switched; }

private:
  struct Bucket {
    AssignmentProblem problem;                     // its seconds are estimates whenever it is solved
    std::vector<std::vector<Estimate>> estimates;  // per region, variant
    std::vector<std::vector<uint64_t>> measuredAt; // the run of the last measurement
    std::vector<int> current, planned;             // planned: current, or with one region explored
    std::vector<int> favourite;
    double ratio = 1;          // measured to predicted
    double lost = 0;           // by staying, in runs with AdaptOptions::gain
    uint64_t measuredLast = 0; // a run
    bool isSettled = false;    // all estimates of what runs
    bool isStale = true;       // estimates have changed since the solver was asked
    double solvedAt = 0;       // levelOf() then
    uint64_t weighedAt = 0;    // the run in which that solution was last held against what runs
  };
  struct Resource {
    bool isMarked = false, hasFailed = false;
    bool isConfirmed = false; // by a canary that was slow, too
    double slowdown = 1;
    uint64_t tried = 0; // the run of the last canary, or of the mark
    int faults = 0;     // so far: each makes the next canary wait longer
  };

  Bucket &bucketOf(int64_t key);
  void recall(Bucket &bucket, const LearnedBucket &learned);
  double ratioOf(const Bucket &bucket) const;
  const AssignmentProblem &estimated(Bucket &bucket) const;
  double levelOf(const Bucket &bucket) const;
  double doubtOf(const Bucket &bucket, double level) const;
  double estimateOf(const Bucket &bucket, size_t region, size_t variant) const;
  void reconsider(Bucket &bucket, const char *reason, bool atOnce);
  void switchTo(Bucket &bucket, const std::vector<int> &to, const char *reason, double from, double seconds);
  void explore(Bucket &bucket);
  bool hasNews(const Bucket &bucket) const;
  bool measure(Bucket &bucket, size_t region, double seconds);
  void forgetSolutions();
  int resourceOf(size_t region, int variant) const;

  AssignmentProblem problem;
  AdaptOptions options;
  std::map<int64_t, Bucket> buckets;
  std::map<int64_t, LearnedBucket> known; // of buckets that have not run yet
  std::vector<Resource> resources;
  std::vector<AdaptEvent> log;
  uint64_t run = 0, switched = 0;
  uint64_t nextExplored; // the run from which on something may be explored
  int64_t currentKey = 0;
  bool isMeasuring = true;
};

} // namespace dspark
