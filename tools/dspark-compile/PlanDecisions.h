// What a compile has decided for every step of a plan, and what it did not choose: what --explain shows,
// --save-plan-rules writes and remarks say.
#pragma once
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace dspark {

/// Another way to run a step.
struct StepAlternative {
  std::string device, precision; // precision: "" if it is the step's own
  double seconds = 0;            // the step's, plus by how much later the run would end
  std::string refusal;           // why it cannot be, "" if it can
};

/// A step in a branch or loop.
struct InnerStep {
  std::string nodes, op, kernel;
  double calls = 0, measured = 0; // per run; seconds of all calls
};

struct StepDecision {
  int step = 0;         // in the plan's body
  int region = -1;      // steps with one decision; -1: there are no devices
  std::string nodes;    // ONNX names
  std::string op, type; // catalogue operator, "if" or "loop"; of the first result, "f32[1, 64]"
  std::string device = "cpu", precision, kernel;
  double predicted = 0;  // seconds on that device
  double measured = 0;   // on the CPU, if that is the device; 0: not measured
  double start = 0;      // seconds after the run's, as predicted
  double error = 0;      // relative, of its result, if its precision was chosen
  double bytes = 0;      // weights
  bool isChoice = false; // whether its precision could be chosen
  std::string rejected;  // the best rejected alternative, and why
  std::vector<StepAlternative> alternatives;
  std::vector<int> inputs;       // entries of PlanDecisions::steps that it reads from
  std::vector<InnerStep> inside; // of a branch or loop, those that ran
};

struct DecidedDevice {
  std::string name, kind;
  double memory = 0, weights = 0, tensors = 0; // bytes: what it has, what the plan keeps there
};

/// A value that crosses between devices.
struct DecidedTransfer {
  std::string value, from, to;
  double bytes = 0, seconds = 0;
};

/// What was decided for further sizes of the inputs.
struct DecidedSizes {
  std::map<std::string, int64_t> dims; // of symbols
  std::vector<std::string> devices;    // by PlanDecisions::steps
  double seconds = 0;                  // predicted for a run
};

struct PlanDecisions {
  std::vector<StepDecision> steps;
  std::vector<DecidedDevice> devices; // beside the CPU
  std::vector<DecidedTransfer> transfers;
  std::vector<DecidedSizes> sizes;    // beside those of `shapes`
  double seconds = 0, cpuSeconds = 0; // predicted for a run, and with the CPU alone; transfers counted
  double error = 0;                   // of the outputs with the devices, relative to the CPU's
  int threads = 1;
  std::string shapes;  // the inputs that it was decided for
  std::string profile; // of the cost model
};

inline std::string megabytesText(double bytes) {
  char text[40];
  std::snprintf(text, sizeof text, "%.3g MB", bytes * 1e-6);
  return text;
}

} // namespace dspark
