// Chooses the device of every step of a plan, for each of the sizes that are asked for: the CPU's times are
// measured, the devices tell theirs, the solver weighs them with what crosses between and with the devices'
// memory, and runs confirm that every device computes what the CPU computes.
#pragma once
#include "planning/MachineProfile.h"
#include "runtime/executor/PlacementProblem.h"
#include "runtime/format/PlanRewrite.h"
#include "tools/dspark-compile/Calibration.h"
#include "tools/dspark-compile/PlanDecisions.h"
#include <map>
#include <optional>

namespace dspark {

struct PlacementRequest {
  std::vector<DeviceSpec> devices; // none: what the CPU does is described
  CalibrationRequest calibration;  // shapes, and inputs for the runs
  double maxError = 0; // of the outputs; at least what another order of f32 sums makes of them is allowed
  std::map<int, std::string> forced; // by step of the body: the device that rules want
  int threads = 0;                   // of the CPU; 0: one per core
};

class PlacementSearch {
public:
  /// Decides, and writes devices and regions to the plan where `devices` are given. Errors of plug-ins and
  /// rules name them; Mismatch names a device whose results are off.
  static StatusOr<PlanDecisions> run(const std::string &plan, const PlacementRequest &request,
                                     const MachineProfile &machine);

private:
  PlacementSearch(const PlacementRequest &request, const MachineProfile &machine)
      : request(request), machine(machine) {}
  Status open(const std::string &plan);
  Status decideFor(size_t size);
  std::map<std::string, int64_t> dimsOf(size_t size) const;
  bool isOfSize(size_t set) const { return set % sizes == size; }
  Status runAll();
  Status measure();
  StepDecision describe(const BoundStep &step, double footprint) const;
  std::optional<StepDecision> describeMeasured(const StepInfo &step) const;
  void describeAll();
  std::string onlyOnCpuBecause(size_t unit) const;
  void addVariants();
  Status force();
  Status solve();
  StatusOr<BoundPlan> bind();
  void lowerLimits();
  void describeTransfers(const BoundPlan &placed);
  Status validateDevices();
  Status validateUnits(int device, std::span<const size_t> units);
  Status dropVariant(size_t unit, int device);
  Status validateChoice();
  Status validateOn(const Placement &placement, const std::string &who);
  void explain();
  std::string rejectedBy(size_t unit, StepDecision &decision);
  void merge();
  bool agree(size_t unit, size_t other) const;
  Status write(const std::string &plan) const;
  bool isBySize() const;
  void writeSizes(fb::PlanT &plan) const;
  Placement placement() const;
  Placement placementOn(int device, std::span<const size_t> units) const;
  int deviceOf(size_t unit) const;

  const PlacementRequest &request;
  const MachineProfile &machine;
  std::shared_ptr<const Program> program;
  std::unique_ptr<Session> session;
  Calibration calibration;
  std::vector<OutputNumbers> expected; // by set
  size_t sizes = 1, size = 0; // how many there are; the one that is being decided for, the first one last
  BoundPlan bound;            // of the CPU alone
  Profile profile;
  int measuredRuns = 0;                           // that the profile is of
  PlanDecisions decisions;                        // one entry per unit
  std::vector<const BoundStep *> unitSteps;       // null where shapes alone do not tell what runs
  AssignmentProblem problem;                      // unit u is region u + 1
  std::vector<std::vector<std::string>> refusals; // by unit and device
  std::vector<int> chosen;                        // by region of the problem
  std::vector<double> limits;                     // by device, without the CPU: bytes of its memory
  std::vector<Placement> placements;              // by size
  struct Merged {
    std::vector<size_t> units;
    bool isPinned; // by a rule
  };
  std::vector<Merged> regions;
};

} // namespace dspark
