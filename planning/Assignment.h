// Chooses a variant (precision, device, kernel, layout) for every region of a graph: least predicted time
// under a bound on the error and the devices' memory, with what casts and transfers between regions cost.
//
// Lagrangian relaxation of the bounds; for given multipliers the minimum over all assignments is found by
// variable elimination, which is exact on chains and on graphs as narrow as neural networks are. Its value is
// a lower bound of what any assignment costs. Small graphs are then searched to the end (branch and bound
// with that bound); on large ones local search closes most of the gap, and what is left is reported.
//
// That is the least sum. Where devices work beside each other the sum is where a search for the earliest end
// starts (Timeline.h).
#pragma once
#include <string>
#include <vector>

namespace dspark {

struct RegionVariant {
  int device = 0;
  double seconds = 0;
  double error = 0; // its share of the budget
  double bytes = 0; // of the device's memory, for as long as the plan is loaded
};

struct AssignedRegion {
  std::vector<RegionVariant> variants; // at least one
};

/// What a pair of regions pays for their choice (casts, layout changes), [variants of from][variants of to].
struct AssignedEdge {
  int from = 0, to = 0;
  std::vector<double> seconds;
};

/// One value that `consumers` read. Between devices it is transferred once per device that needs it.
struct AssignedFlow {
  int producer = 0;
  std::vector<int> consumers;
  double bytes = 0;
};

/// Seconds of moving bytes from one device to another.
struct TransferCost {
  double latency = 0, perByte = 0;
};

struct AssignmentProblem {
  std::vector<AssignedRegion> regions;
  std::vector<AssignedEdge> edges;
  std::vector<AssignedFlow> flows;
  int devices = 1;                     // at most 64
  std::vector<TransferCost> transfers; // [devices][devices]; may be empty with one device
  /// By device: where its values lie. Devices of one place (a CPU with one thread, and with all) take turns.
  /// Empty: each has its own.
  std::vector<int> places;
  /// The time is that of the end, not the sum: regions start in their order, and places work beside each
  /// other. Region 0 is then the caller, in place 0, who gives inputs first and takes outputs last.
  bool overlaps = false;
  double errorBudget = 0;
  std::vector<double> deviceBytes; // per device; empty: no limit
};

struct AssignmentSolution {
  std::vector<int> variants; // per region; the best that was found
  double seconds = 0, error = 0;
  std::vector<double> bytes; // per device
  double lowerBound = 0;     // no assignment within the bounds takes less
  bool isFeasible = false;   // within the bounds. If not, `variants` has the least error
  bool isOptimal = false;    // proven
};

inline int placeOf(const AssignmentProblem &problem, int device) {
  return problem.places.empty() ? device : problem.places[size_t(device)];
}

/// What one edge costs.
double edgeSeconds(const AssignmentProblem &problem, const AssignedEdge &edge,
                   const std::vector<int> &variants);

/// Time, error and memory of one assignment; isFeasible as found, no bound.
AssignmentSolution evaluateAssignment(const AssignmentProblem &problem, const std::vector<int> &variants);

/// Deterministic. Terminates in seconds on thousands of regions.
AssignmentSolution solveAssignment(const AssignmentProblem &problem);

} // namespace dspark
