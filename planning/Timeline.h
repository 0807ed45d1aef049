// When a run ends whose devices work beside each other. The CPU goes through the regions in their order; what
// another place does it only queues, and it waits where it needs a result. A place does in order what it was
// given, copies included; what is made on the CPU starts to cross at once, what is made elsewhere right
// behind its region. So does the executor (runtime/executor/DeviceSteps.cpp).
#pragma once
#include "planning/Assignment.h"

namespace dspark {

class Timeline {
public:
  /// `problem` outlives this.
  explicit Timeline(const AssignmentProblem &problem);
  /// Seconds from the first input to the last output.
  double end(const std::vector<int> &variants);
  /// By region, when it started in what end() was asked last.
  const std::vector<double> &starts() const { return started; }

private:
  struct Flow {
    double atHost = 0;    // when it is there
    uint64_t reached = 0; // bit p: it is in place p, or queued for it
  };
  int placeOfRegion(size_t region) const;
  double copySeconds(int fromPlace, int toPlace, double bytes) const;
  void send(size_t region);
  void fetch(size_t flow, int place);

  const AssignmentProblem &problem;
  std::vector<int> deviceOf;                        // by place: one of its devices
  std::vector<std::vector<size_t>> reads, produces; // flows by region
  std::vector<std::vector<size_t>> edgesTo;         // by region
  const std::vector<int> *variants = nullptr;
  std::vector<double> clocks; // by place: when it has done what it was given
  std::vector<double> started;
  std::vector<Flow> flows;
};

/// The earliest end that is found from `start` on, within the bounds: all assignments where they are few,
/// else changes of one region or several in a row as long as they help. Deterministic.
AssignmentSolution endEarlier(const AssignmentProblem &problem, const AssignmentSolution &start);

} // namespace dspark
