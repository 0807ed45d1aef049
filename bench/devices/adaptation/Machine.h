// A session on a plan for one device, the stub, in virtual time, and a script's hand on both: the device can
// be made slow, small or faulty, the CPU busy. Kernels, copies and commands are really executed; only the
// time that they take is what the stub says and the generic profile predicts.
#pragma once
#include "runtime/adapt/RegionProblem.h"
#include "runtime/executor/Session.h"
#include "tools/dspark-rt/Inputs.h"
#include <random>

namespace dspark::bench {

struct State {
  const char *name = "usual";
  double device = 1;                    // times slower
  double oneThread = 1, allThreads = 1; // times slower
  bool isFaulty = false;                // the device fails from a random launch on
  double memoryShare = 1;               // of the weights, what fits on the device
  int size = 0;                         // of the inputs
};

struct Run {
  double seconds = 0;        // of the whole, by the true times: what failed before counts, and canaries
  std::vector<int> variants; // by region, as RegionProblem has them
  bool hasAnswer = true, isRight = true;
};

struct MachineOptions {
  std::string plan, device;                          // of --device
  std::vector<std::map<std::string, int64_t>> sizes; // dims of symbols
  int threads = 2;
  bool adapts = true;
  std::string learned;
  double noise = 0;
  unsigned seed = 1;
};

class Machine {
public:
  static StatusOr<std::unique_ptr<Machine>> create(const MachineOptions &options);

  void enter(const State &state);
  Run run();

  /// The true times of the regions in a state; what cannot be there takes kNever.
  AssignmentProblem truth(const State &state) const;
  /// What that plan takes in that state, its regions that cannot be on the device being on the CPU.
  double seconds(const std::vector<int> &variants, const State &state) const;
  /// The best plan for the state.
  AssignmentSolution best(const State &state) const { return solveAssignment(truth(state)); }

  Session &session() { return *running; }

  static constexpr double kNever = 1e6;

private:
  Machine(const MachineOptions &options) : options(options), random(options.seed) {}
  Status open();
  Status learnSizes();
  std::vector<int> variantsNow() const;
  double disturbed();

  MachineOptions options;
  std::mt19937 random;
  std::shared_ptr<const Program> program;
  std::unique_ptr<Session> running;
  std::unique_ptr<RegionProblem> regions;
  struct Size {
    Inputs inputs;
    std::vector<float> expected;
    AssignmentProblem problem; // with the true times
  };
  std::vector<Size> sizes;
  double tensorBytes = 0; // on the device, beside weights
  State now;
  std::vector<int> before; // variants of the last run
};

} // namespace dspark::bench
