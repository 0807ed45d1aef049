// Chooses per range of shapes which device runs each region of a plan, and where that is the CPU whether with
// one thread or all, from what the regions took. Everything it chooses among was validated when the plan was
// made; the number of threads changes no results.
#pragma once
#include "runtime/adapt/Adapter.h"
#include "runtime/adapt/CpuCanary.h"
#include "runtime/adapt/RegionProblem.h"
#include "runtime/executor/SessionDevices.h"
#include <map>

namespace dspark {

struct BoundPlan;

class PlacementChoice {
public:
  /// All outlive this. With virtual time `virtualSlowdown` is what one thread and all threads are slower by
  /// than predicted; null: it is measured.
  PlacementChoice(const Program &program, SessionDevices &devices, const CostModel &model, ThreadPool &pool,
                  const std::array<double, 2> *virtualSlowdown);
  ~PlacementChoice();

  bool knows(int64_t shapes) const { return known.contains(shapes); }
  /// `bound`: the plan for these shapes, all on the CPU. Shapes of one bucket are so much alike that they
  /// share a choice, and what was measured for one counts for all in proportion to what is predicted for
  /// them.
  void seed(int64_t shapes, int64_t bucket, const BoundPlan &bound);

  /// The placement of the next run, for shapes that are known. Looks after the devices first: their memory,
  /// and canaries on those that were slow or had failed. `mustRelease` becomes true if a device has less
  /// memory than before.
  const Placement &next(int64_t shapes, bool &mustRelease);
  /// By region of that run, 1 where the calling thread alone does what is the CPU's.
  const std::vector<char> &serialRegions() const { return isSerial; }
  /// Whether report() is wanted of that run.
  bool measures() const { return choice.measures(); }
  /// Seconds by region of the run that next() was asked for.
  void report(std::span<const double> taken);
  /// A device could not do its part; next() has a way without it.
  void failed(const DeviceFault &fault);

  /// The changes so far, taken away.
  std::vector<AdaptEvent> takeEvents();
  Adapter &adapter() { return choice; }

private:
  struct Canary;
  void watchMemory(bool &mustRelease);
  void runCanary();
  double slowdownOf(int resource);
  double canarySeconds(int device);
  int deviceOf(size_t region) const;
  void makeCanary(int device, const BoundPlan &bound);

  const Program &program;
  SessionDevices &devices;
  const CostModel &model;
  const std::array<double, 2> *virtualSlowdown;
  RegionProblem regions;
  Adapter choice;
  std::optional<CpuCanary> cpu; // none with virtual time
  struct Shapes {
    int64_t bucket = 0;
    std::vector<std::vector<double>> scale; // by region of the problem and variant: from here to the bucket's
  };
  std::map<int64_t, Shapes> known;
  std::map<int64_t, AssignmentProblem> buckets;  // as predicted for their first shapes
  const Shapes *current = nullptr;               // of next()
  std::vector<std::unique_ptr<Canary>> canaries; // by device; null: none yet, and of the CPU
  std::vector<double> memory;                    // by device, as it said last
  std::vector<double> limits;                    // by device of the problem: what weights may take
  std::vector<int> variants;                     // of next()
  std::vector<char> isSerial;
  Placement placement;
  std::vector<double> seconds;
  std::string detail; // of the last fault
};

} // namespace dspark
