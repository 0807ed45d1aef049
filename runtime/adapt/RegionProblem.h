// The regions of a plan as a problem for planning/Assignment.h: region r of the plan is r + 1 there, behind
// the caller. Its variants are the plan's, in their order; where the CPU has several threads, device 0 is one
// of them and a device behind the plan's all of them, as a last variant of every region.
#pragma once
#include "planning/CostModel.h"
#include "runtime/executor/PlacementProblem.h"

namespace dspark {

class RegionProblem {
public:
  /// `threads` of the CPU. The program outlives this.
  RegionProblem(const Program &program, int threads) : program(program), threads(threads) {}

  int devices() const { return int(program.devices().size()) + (threads > 1); }
  /// All threads of the CPU; none with one thread.
  bool isAllThreads(int device) const { return device == int(program.devices().size()); }

  /// Regions, variants and devices, with the times of when the plan was made.
  AssignmentProblem shapeless() const;
  /// For the shapes that `bound` was bound for, all on the CPU: what the model and the devices predict.
  AssignmentProblem predicted(const SessionDevices &opened, const BoundPlan &bound,
                              const CostModel &model) const;

  /// By the variants of the plan's regions.
  Placement placement(std::span<const int> variants) const;
  /// By region, 1 where the calling thread alone does it.
  std::vector<char> serialRegions(std::span<const int> variants) const;

private:
  void addVariants(AssignmentProblem &problem) const;

  const Program &program;
  int threads;
};

} // namespace dspark
