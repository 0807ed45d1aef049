// Chooses per shape which device runs each region of a plan, from what the regions took. Everything it
// chooses among was validated when the plan was made.
#pragma once
#include "planning/CostModel.h"
#include "runtime/adapt/Adapter.h"
#include "runtime/executor/Placement.h"
#include "runtime/executor/SessionDevices.h"
#include <map>

namespace dspark {

struct BoundPlan;

class PlacementChoice {
public:
  /// All outlive this. `threads` is what the CPU's times are predicted for. With virtual time
  /// `virtualSlowdown` is what the CPU is slower by than predicted; null: it is measured.
  PlacementChoice(const Program &program, SessionDevices &devices, const CostModel &model, int threads,
                  const double *virtualSlowdown);
  ~PlacementChoice();

  bool knows(int64_t bucket) const { return known.contains(bucket); }
  /// `bound`: the plan for shapes of that bucket, all on the CPU.
  void seed(int64_t bucket, const BoundPlan &bound);

  /// The placement of the next run. Looks after the devices first: their memory, and canaries on those that
  /// were slow or had failed. `mustRelease` becomes true if a device has less memory than before.
  const Placement &next(int64_t bucket, bool &mustRelease);
  /// Seconds by region of the run that next() was asked for.
  void report(std::span<const double> regions);
  /// A device could not do its part; next() has a way without it.
  void failed(const DeviceFault &fault);

  /// The changes so far, taken away.
  std::vector<AdaptEvent> takeEvents();
  Adapter &adapter() { return choice; }

private:
  struct Canary;
  AssignmentProblem problemOf(const BoundPlan &bound) const;
  void watchMemory(bool &mustRelease);
  void runCanary();
  double canarySeconds(int device);
  void makeCanary(int device, const BoundPlan &bound);

  const Program &program;
  SessionDevices &devices;
  const CostModel &model;
  int threads;
  const double *virtualSlowdown;
  Adapter choice;
  std::map<int64_t, bool> known;
  std::vector<std::unique_ptr<Canary>> canaries; // by device; null: none yet
  std::vector<double> memory;                    // by device, as it said last
  std::vector<double> limits;                    // by device: what weights may take
  std::vector<int> variants;                     // of next()
  Placement placement;
  std::vector<double> seconds;
  std::string detail; // of the last fault
};

} // namespace dspark
