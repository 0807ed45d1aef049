// The data that precisions are judged by: sets of inputs for a plan, of which some are held out to confirm
// what the others decided.
#pragma once
#include "runtime/executor/Session.h"
#include "tools/dspark-compile/OutputError.h"
#include "tools/dspark-rt/Inputs.h"

namespace dspark {

struct CalibrationRequest {
  std::vector<std::string> files; // CalibrationFiles.h; none: random inputs
  /// Of symbols, for random inputs: one size each or several, which sets take by turns.
  std::map<std::string, std::vector<int64_t>> dims;
};

class Calibration {
public:
  /// Four random sets per size, or those of the files. The last quarter, at least one set where there are
  /// two, is held out. Errors name the file and the input that does not fit.
  static StatusOr<Calibration> create(const Program &program, const CalibrationRequest &request);

  size_t sets() const { return inputs.size(); }
  size_t heldOut() const { return inputs.size() - decides; } // the last ones
  size_t deciding() const { return decides; }
  bool isSynthetic() const { return synthetic; }

  /// Session::bind for that set; `shapes` becomes what it was bound for, "x f32[1, 3], ...".
  StatusOr<BoundPlan> bind(Session &session, size_t set, std::string &shapes);
  /// Runs a plan of the model on one set and gives the model's outputs; what a plan has beyond these is left
  /// in the session. A plan of ByteMode::Compare takes `flags`, one per contraction.
  StatusOr<OutputNumbers> run(Session &session, size_t set, std::vector<uint8_t> *flags = nullptr);

private:
  std::vector<Inputs> inputs;
  std::vector<std::string> sources; // where each set is from, for messages
  size_t outputs = 0;               // of the model
  size_t decides = 0;
  bool synthetic = true;
};

} // namespace dspark
